// A progress line on stderr for work longer than a second; silent when stderr is no terminal.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>

namespace mxjit::cli {

/// Thread-safe. The line shows done and total, the rate and the time that remains, and is wiped at the end.
class Progress {
 public:
  enum class Unit { count, bytes };

  Progress(std::string label, std::uint64_t total, Unit unit);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void advance(std::uint64_t amount);

 private:
  using Clock = std::chrono::steady_clock;
  void draw(Clock::time_point now);

  const std::string label_;
  const std::uint64_t total_;
  const Unit unit_;
  const bool terminal_;
  const Clock::time_point start_ = Clock::now();
  std::mutex mutex_;
  std::uint64_t done_ = 0;
  Clock::time_point drawn_ = start_;
  bool visible_ = false;
};

}  // namespace mxjit::cli
