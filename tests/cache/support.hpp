// What the cache's tests share: a compiler and a file system to put in the place of the real ones, folders
// that go away, and processes that start together.
#pragma once

#include <sys/wait.h>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/file_system.hpp"
#include "cache/cache.hpp"
#include "cache/fake_compiler.hpp"
#include "loops.hpp"
#include "mxjit/log.hpp"

namespace mxjit::test {

/// A folder of its own, removed in the end.
class Folder {
 public:
  Folder();
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  fs::path path() const { return path_; }
  fs::path root() const { return path_ / "root"; }

 private:
  fs::path path_;
};

enum class Call {
  open,
  close,
  read,
  write,
  sync,
  rename,
  unlink,
  make_directory,
  status,
  list,
  touch,
  try_lock,
  unlock
};
inline constexpr Call all_calls[] = {
    Call::open,   Call::close, Call::read,  Call::write,    Call::sync,           Call::rename, Call::unlink,
    Call::status, Call::list,  Call::touch, Call::try_lock, Call::make_directory, Call::unlock};
const char* to_string(Call call);

/// The real file system with a hook before every call: a negative result is the call's. `path` is empty for
/// calls on descriptors.
class FaultyFiles : public FileSystem {
 public:
  using Hook = std::function<int(Call call, const std::string& path)>;
  explicit FaultyFiles(Hook hook = {}) : hook_(std::move(hook)) {}
  void set_hook(Hook hook) { hook_ = std::move(hook); }
  std::atomic<int> calls{0};

  int open(const std::string& path, int flags, mode_t mode) override;
  int close(int fd) override;
  ssize_t read(int fd, void* to, std::size_t size, std::uint64_t offset) override;
  ssize_t write(int fd, const void* from, std::size_t size) override;
  int sync(int fd) override;
  int rename(const std::string& from, const std::string& to) override;
  int unlink(const std::string& path) override;
  int make_directory(const std::string& path, mode_t mode) override;
  int status(const std::string& path, struct stat& result) override;
  int status(int fd, struct stat& result) override;
  int list(const std::string& path, std::vector<std::string>& names) override;
  int touch(const std::string& path) override;
  int try_lock(int fd, std::uint64_t offset) override;
  int unlock(int fd, std::uint64_t offset) override;

 private:
  int fault(Call call, const std::string& path = {});
  Hook hook_;
};

/// Options for a root alone.
cache::Options rooted(const fs::path& root);

/// A cache on the root of `folder`, as a process of its own would open it. `files`: null, the real ones.
cache::Cache open(const Folder& folder,
                  std::shared_ptr<FakeCompiler> compiler = std::make_shared<FakeCompiler>(),
                  FileSystem* files = nullptr);

/// Runs `body` in `count` child processes that start together; their results are exit statuses (a signal: 128
/// and its number).
std::vector<int> run_children(int count, const std::function<int(int index)>& body);

/// Every warning logged while it lives.
class Warnings {
 public:
  Warnings();
  ~Warnings();
  Warnings(const Warnings&) = delete;
  Warnings& operator=(const Warnings&) = delete;
  std::vector<std::string> lines() const;
  std::size_t count() const { return lines().size(); }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> lines_;
};

/// Files below `folder`, relative, sorted.
std::vector<std::string> files_below(const fs::path& folder);
std::string read_bytes(const fs::path& path);
void write_bytes(const fs::path& path, std::string_view bytes);
/// The one entry's file below `root`.
fs::path only_entry(const fs::path& root);

}  // namespace mxjit::test
