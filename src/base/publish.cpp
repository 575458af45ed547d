#include <fcntl.h>
#include <sys/random.h>

#include <array>
#include <cerrno>
#include <ctime>
#include <random>

#include "base/file_system.hpp"

namespace mxjit {
namespace {

int write_all(FileSystem& files, int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = files.write(fd, bytes.data(), bytes.size());
    if (written < 0) return static_cast<int>(written);
    if (written == 0) return -EIO;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

std::string parent(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

int fill(FileSystem& files, const OpenFile& file, std::string_view bytes) {
  // The lock says that the writer lives; where there are no locks only a temporary's age speaks for it.
  files.try_lock(file.fd(), 0);
  if (const int error = write_all(files, file.fd(), bytes); error < 0) return error;
  return files.sync(file.fd());
}

}  // namespace

std::string unique_name(std::string_view prefix) {
  std::array<unsigned char, 16> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    std::random_device device;
    for (unsigned char& byte : bytes) byte = static_cast<unsigned char>(device());
  }
  constexpr std::string_view digits = "0123456789abcdef";
  std::string name(prefix);
  for (const unsigned char byte : bytes) {
    name += digits[byte >> 4];
    name += digits[byte & 15];
  }
  return name;
}

int read_file(FileSystem& files, const std::string& path, std::string& bytes, std::uint64_t limit,
              std::int64_t* modified) {
  const OpenFile file(files, path, O_RDONLY | O_NONBLOCK);
  if (!file.ok()) return file.error();
  struct stat status {};
  if (const int error = files.status(file.fd(), status); error < 0) return error;
  if (!S_ISREG(status.st_mode)) return -EBADMSG;
  if (modified != nullptr) *modified = status.st_mtime;
  const auto size = static_cast<std::uint64_t>(status.st_size);
  if (size > limit) return -EFBIG;
  bytes.resize(size);
  std::size_t at = 0;
  while (at < bytes.size()) {
    const ssize_t got = files.read(file.fd(), bytes.data() + at, bytes.size() - at, at);
    if (got < 0) return static_cast<int>(got);
    if (got == 0) break;  // shorter than it was: the caller's verification will tell
    at += static_cast<std::size_t>(got);
  }
  bytes.resize(at);
  return 0;
}

int publish_file(FileSystem& files, const std::string& temporaries, const std::string& path,
                 std::string_view bytes, std::string_view prefix) {
  const std::string temporary = temporaries + "/" + unique_name(prefix);
  OpenFile file(files, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0666);
  if (!file.ok()) return file.error();
  int error = fill(files, file, bytes);
  if (error == 0) error = files.rename(temporary, path);
  if (error < 0) {
    files.unlink(temporary);
    return error;
  }
  error = file.close();  // some network file systems report a failed write only here
  if (error < 0) return error;
  const OpenFile directory(files, parent(path), O_RDONLY | O_DIRECTORY);
  if (!directory.ok()) return directory.error();
  error = files.sync(directory.fd());
  return error == -EINVAL || error == -EBADF ? 0 : error;  // a file system whose directories cannot be synced
}

int make_directories(FileSystem& files, const std::string& path, mode_t mode) {
  int error = files.make_directory(path, mode);
  if (error == -ENOENT && parent(path) != path) {
    error = make_directories(files, parent(path), mode);
    if (error < 0) return error;
    error = files.make_directory(path, mode);
  }
  return error == -EEXIST ? 0 : error;
}

int sweep_temporaries(FileSystem& files, const std::string& temporaries, std::int64_t seconds,
                      std::string_view prefix) {
  std::vector<std::string> names;
  if (files.list(temporaries, names) < 0) return 0;
  int swept = 0;
  for (const std::string& name : names) {
    if (!std::string_view(name).starts_with(prefix)) continue;
    const std::string path = temporaries + "/" + name;
    struct stat status {};
    if (files.status(path, status) < 0 || !S_ISREG(status.st_mode)) continue;
    if (std::time(nullptr) - status.st_mtime < seconds) continue;
    const OpenFile file(files, path, O_WRONLY | O_NONBLOCK | O_NOFOLLOW);
    if (!file.ok() || files.try_lock(file.fd(), 0) < 0) continue;
    if (files.unlink(path) == 0) ++swept;
  }
  return swept;
}

}  // namespace mxjit
