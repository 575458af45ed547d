#include "driver/forks.hpp"

#include <pthread.h>

namespace mxjit::driver {

constinit std::atomic<std::uint32_t> fork_count{0};

std::uint32_t watch_forks() {
  // Goes with the library when it is unloaded.
  [[maybe_unused]] static const int watching =
      ::pthread_atfork(nullptr, nullptr, [] { fork_count.fetch_add(1, std::memory_order_relaxed); });
  return fork_count.load(std::memory_order_relaxed);
}

}  // namespace mxjit::driver
