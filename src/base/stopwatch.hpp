// Time spent in a scope, added to a total that threads share.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace mxjit {

class Stopwatch {
 public:
  explicit Stopwatch(std::atomic<std::uint64_t>& total_ns) : total_ns_(total_ns) {}
  ~Stopwatch() {
    const std::chrono::nanoseconds elapsed = std::chrono::steady_clock::now() - start_;
    total_ns_ += static_cast<std::uint64_t>(elapsed.count());
  }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  std::atomic<std::uint64_t>& total_ns_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace mxjit
