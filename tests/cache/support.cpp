#include "support.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>

namespace mxjit::test {

// In memory where that can be: most of these tests' time would be the disk's.
Folder::Folder() {
  const fs::path memory = "/dev/shm";
  path_ =
      (::access(memory.c_str(), W_OK) == 0 ? memory : fs::temp_directory_path()) / unique_name("mxjit_test_");
  fs::create_directories(path_);
}

Folder::~Folder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

const char* to_string(Call call) {
  static constexpr const char* names[] = {"open",   "close",    "read",           "write",  "sync",
                                          "rename", "unlink",   "make_directory", "status", "list",
                                          "touch",  "try_lock", "unlock"};
  return names[static_cast<int>(call)];
}

int FaultyFiles::fault(Call call, const std::string& path) {
  ++calls;
  return hook_ ? hook_(call, path) : 0;
}

int FaultyFiles::open(const std::string& path, int flags, mode_t mode) {
  const int error = fault(Call::open, path);
  return error < 0 ? error : FileSystem::open(path, flags, mode);
}
int FaultyFiles::close(int fd) {
  const int error = fault(Call::close);
  const int result = FileSystem::close(fd);  // closed in any case
  return error < 0 ? error : result;
}
ssize_t FaultyFiles::read(int fd, void* to, std::size_t size, std::uint64_t offset) {
  const int error = fault(Call::read);
  return error < 0 ? error : FileSystem::read(fd, to, size, offset);
}
ssize_t FaultyFiles::write(int fd, const void* from, std::size_t size) {
  const int error = fault(Call::write);
  return error < 0 ? error : FileSystem::write(fd, from, size);
}
int FaultyFiles::sync(int fd) {
  const int error = fault(Call::sync);
  return error < 0 ? error : FileSystem::sync(fd);
}
int FaultyFiles::rename(const std::string& from, const std::string& to) {
  const int error = fault(Call::rename, to);
  return error < 0 ? error : FileSystem::rename(from, to);
}
int FaultyFiles::unlink(const std::string& path) {
  const int error = fault(Call::unlink, path);
  return error < 0 ? error : FileSystem::unlink(path);
}
int FaultyFiles::make_directory(const std::string& path, mode_t mode) {
  const int error = fault(Call::make_directory, path);
  return error < 0 ? error : FileSystem::make_directory(path, mode);
}
int FaultyFiles::status(const std::string& path, struct stat& result) {
  const int error = fault(Call::status, path);
  return error < 0 ? error : FileSystem::status(path, result);
}
int FaultyFiles::status(int fd, struct stat& result) {
  const int error = fault(Call::status);
  return error < 0 ? error : FileSystem::status(fd, result);
}
int FaultyFiles::list(const std::string& path, std::vector<std::string>& names) {
  const int error = fault(Call::list, path);
  return error < 0 ? error : FileSystem::list(path, names);
}
int FaultyFiles::touch(const std::string& path) {
  const int error = fault(Call::touch, path);
  return error < 0 ? error : FileSystem::touch(path);
}
int FaultyFiles::try_lock(int fd, std::uint64_t offset) {
  const int error = fault(Call::try_lock);
  return error < 0 ? error : FileSystem::try_lock(fd, offset);
}
int FaultyFiles::unlock(int fd, std::uint64_t offset) {
  const int error = fault(Call::unlock);
  return error < 0 ? error : FileSystem::unlock(fd, offset);
}

cache::Options rooted(const fs::path& root) {
  cache::Options options;
  options.root = root;
  return options;
}

cache::Cache open(const Folder& folder, std::shared_ptr<FakeCompiler> compiler, FileSystem* files) {
  return cache::Cache(rooted(folder.root()), {files, std::move(compiler)});
}

std::vector<int> run_children(int count, const std::function<int(int index)>& body) {
  int barrier[2];
  EXPECT_EQ(::pipe(barrier), 0);
  std::vector<pid_t> children;
  for (int i = 0; i < count; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::close(barrier[1]);
      char byte = 0;
      while (::read(barrier[0], &byte, 1) > 0) {  // until the parent lets everybody go
      }
      int result = 99;
      try {
        result = body(i);
      } catch (const std::exception& error) {
        std::fprintf(stderr, "child %d: %s\n", i, error.what());
      }
      std::fflush(nullptr);
      ::_exit(result);
    }
    children.push_back(child);
  }
  ::close(barrier[0]);
  ::close(barrier[1]);
  std::vector<int> results;
  for (const pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    results.push_back(WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
  }
  return results;
}

Warnings::Warnings() {
  set_log_sink(
      [this](LogLevel, std::string_view line) {
        const std::scoped_lock lock(mutex_);
        lines_.emplace_back(line);
      },
      LogLevel::warn);
}
Warnings::~Warnings() { set_log_sink({}); }
std::vector<std::string> Warnings::lines() const {
  const std::scoped_lock lock(mutex_);
  return lines_;
}

std::vector<std::string> files_below(const fs::path& folder) {
  std::vector<std::string> files;
  if (!fs::exists(folder)) return files;
  for (const auto& item : fs::recursive_directory_iterator(folder)) {
    if (!item.is_directory()) files.push_back(item.path().lexically_relative(folder).string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::string read_bytes(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write_bytes(const fs::path& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

fs::path only_entry(const fs::path& root) {
  fs::path found;
  for (const std::string& file : files_below(root)) {
    if (!file.ends_with(".kernel")) continue;
    EXPECT_TRUE(found.empty()) << file << " beside " << found;
    found = root / file;
  }
  EXPECT_FALSE(found.empty()) << root;
  return found;
}

}  // namespace mxjit::test
