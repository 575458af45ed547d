#include "reference/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace mxjit::reference {

void parallel_for(std::int64_t count, const std::function<void(std::int64_t)>& work) {
  const std::int64_t threads =
      std::min<std::int64_t>(count, std::max(1U, std::thread::hardware_concurrency()));
  if (threads <= 1) {
    for (std::int64_t i = 0; i < count; ++i) work(i);
    return;
  }
  std::atomic<std::int64_t> next{0};
  std::exception_ptr failure;
  std::mutex failure_mutex;
  const auto run = [&] {
    try {
      for (std::int64_t i = next++; i < count; i = next++) work(i);
    } catch (...) {
      const std::lock_guard lock(failure_mutex);
      if (!failure) failure = std::current_exception();
      next = count;
    }
  };
  {
    std::vector<std::jthread> workers;
    for (std::int64_t t = 1; t < threads; ++t) workers.emplace_back(run);
    run();
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace mxjit::reference
