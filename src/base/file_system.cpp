#include "base/file_system.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <system_error>

#include "base/immortal.hpp"

namespace mxjit {
namespace {

template <class Call>
auto repeat(Call call) -> decltype(call()) {
  for (;;) {
    const auto result = call();
    if (result >= 0) return result;
    if (errno != EINTR) return -errno;
  }
}

// Locks belong to the open file description, so threads exclude each other too, and closing another
// descriptor of the same file does not drop them.
struct flock byte_lock(short type, std::uint64_t offset) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = static_cast<off_t>(offset >> 1);
  lock.l_len = 1;
  return lock;
}

}  // namespace

int FileSystem::open(const std::string& path, int flags, mode_t mode) {
  const int fd = repeat([&] { return ::open(path.c_str(), flags | O_CLOEXEC, mode); });
  if (fd < 0 || fd > STDERR_FILENO) return fd;
  // The process runs with a standard stream closed: what it prints must not end up in this file.
  const int higher = repeat([&] { return ::fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1); });
  ::close(fd);
  return higher;
}

int FileSystem::close(int fd) { return ::close(fd) == 0 || errno == EINTR ? 0 : -errno; }

ssize_t FileSystem::read(int fd, void* to, std::size_t size, std::uint64_t offset) {
  return repeat([&] { return ::pread(fd, to, size, static_cast<off_t>(offset)); });
}

ssize_t FileSystem::write(int fd, const void* from, std::size_t size) {
  return repeat([&] { return ::write(fd, from, size); });
}

int FileSystem::sync(int fd) {
  return repeat([&] { return ::fsync(fd); });
}

int FileSystem::rename(const std::string& from, const std::string& to) {
  return repeat([&] { return std::rename(from.c_str(), to.c_str()); });
}

int FileSystem::unlink(const std::string& path) {
  return repeat([&] { return ::unlink(path.c_str()); });
}

int FileSystem::make_directory(const std::string& path, mode_t mode) {
  return repeat([&] { return ::mkdir(path.c_str(), mode); });
}

int FileSystem::status(const std::string& path, struct stat& result) {
  return repeat([&] { return ::lstat(path.c_str(), &result); });
}

int FileSystem::status(int fd, struct stat& result) {
  return repeat([&] { return ::fstat(fd, &result); });
}

int FileSystem::list(const std::string& path, std::vector<std::string>& names) {
  DIR* directory = ::opendir(path.c_str());
  if (directory == nullptr) return -errno;
  for (;;) {
    errno = 0;
    const dirent* item = ::readdir(directory);
    if (item == nullptr) break;
    const std::string_view name = item->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  const int error = errno;
  ::closedir(directory);
  return -error;
}

int FileSystem::touch(const std::string& path) {
  return repeat([&] { return ::utimensat(AT_FDCWD, path.c_str(), nullptr, AT_SYMLINK_NOFOLLOW); });
}

int FileSystem::try_lock(int fd, std::uint64_t offset) {
  struct flock lock = byte_lock(F_WRLCK, offset);
  const int result = repeat([&] { return ::fcntl(fd, F_OFD_SETLK, &lock); });
  return result == -EACCES ? -EAGAIN : result;
}

int FileSystem::unlock(int fd, std::uint64_t offset) {
  struct flock lock = byte_lock(F_UNLCK, offset);
  return repeat([&] { return ::fcntl(fd, F_OFD_SETLK, &lock); });
}

FileSystem& host_files() {
  static Immortal<FileSystem> files;
  return *files;
}

int OpenFile::close() {
  if (fd_ < 0) return 0;
  const int result = files_->close(fd_);
  fd_ = -EBADF;
  return result;
}

std::string error_text(int negative_errno) { return std::generic_category().message(-negative_errno); }

}  // namespace mxjit
