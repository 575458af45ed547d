#include "cache/key_lock.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

namespace mxjit::cache {
namespace {

std::uint64_t offset_of(const Digest& key) {
  std::uint64_t offset = 0;
  std::memcpy(&offset, key.data(), sizeof offset);
  return offset;
}

}  // namespace

// One file for all keys, never removed: whoever removes a lock file lets two processes hold "the" lock.
KeyLock::KeyLock(FileSystem& files, const std::string& path, const Digest& key,
                 std::chrono::milliseconds wait)
    : files_(files),
      file_(files, path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0666),
      offset_(offset_of(key)) {
  if (!file_.ok()) return;
  const auto give_up = std::chrono::steady_clock::now() + wait;
  for (std::chrono::milliseconds pause{1};; pause = std::min(2 * pause, std::chrono::milliseconds(50))) {
    const int result = files_.try_lock(file_.fd(), offset_);
    held_ = result == 0;
    if (result != -EAGAIN) return;
    waited_ = true;
    if (std::chrono::steady_clock::now() + pause > give_up) return;
    std::this_thread::sleep_for(pause);
  }
}

// Unlocked by name: a child process forked meanwhile shares the open file, and would keep the lock.
KeyLock::~KeyLock() {
  if (held_) files_.unlock(file_.fd(), offset_);
}

}  // namespace mxjit::cache
