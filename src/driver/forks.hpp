// Whether this process was forked since the driver was set up: CUDA does not survive that, and a call of the
// driver in the child may do anything.
#pragma once

#include <atomic>
#include <cstdint>

namespace mxjit::driver {

/// Grows in the child at every fork() once watch_forks() was called. Read on the launch path: plain memory.
extern std::atomic<std::uint32_t> fork_count;

/// Counts from now on. Returns the count.
std::uint32_t watch_forks();

/// Whether this process was forked since the count was `at`.
inline bool forked_since(std::uint32_t at) noexcept {
  return fork_count.load(std::memory_order_relaxed) != at;
}

}  // namespace mxjit::driver
