// An advisory lock on one key among processes. It saves compiling twice and nothing else: where it cannot be
// had, the caller goes on without.
#pragma once

#include <chrono>
#include <string>

#include "base/file_system.hpp"
#include "base/sha256.hpp"

namespace mxjit::cache {

class KeyLock {
 public:
  /// Waits for the key's byte of the file at `path` at most `wait`.
  KeyLock(FileSystem& files, const std::string& path, const Digest& key, std::chrono::milliseconds wait);
  ~KeyLock();
  KeyLock(const KeyLock&) = delete;
  KeyLock& operator=(const KeyLock&) = delete;

  bool held() const { return held_; }
  /// Somebody else had it at first.
  bool waited() const { return waited_; }

 private:
  FileSystem& files_;
  OpenFile file_;
  std::uint64_t offset_;
  bool held_ = false;
  bool waited_ = false;
};

}  // namespace mxjit::cache
