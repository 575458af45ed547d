// Host times of several calls, taken in turn.
#pragma once

#include <chrono>
#include <functional>
#include <vector>

namespace mxjit::bench {

/// Each job makes `calls` calls and returns the seconds they took: the loop and the clock are its own, so
/// that nothing stands between two calls. A round runs every job once, forwards and backwards by turns.
class HostTimer {
 public:
  using Job = std::function<double(int calls)>;

  std::size_t add(Job job) {
    jobs_.push_back(std::move(job));
    samples_.emplace_back();
    return jobs_.size() - 1;
  }

  /// The first round is a warm-up and leaves no sample.
  void measure(int rounds, int calls) {
    for (int round = 0; round <= rounds; ++round) {
      for (std::size_t i = 0; i < jobs_.size(); ++i) {
        const std::size_t job = round % 2 == 0 ? i : jobs_.size() - 1 - i;
        const double seconds = jobs_[job](calls);
        if (round > 0) samples_[job].push_back(seconds * 1e6 / calls);
      }
    }
  }

  /// Microseconds a call.
  const std::vector<double>& samples(std::size_t job) const { return samples_[job]; }

 private:
  std::vector<Job> jobs_;
  std::vector<std::vector<double>> samples_;
};

/// Seconds that `body()` takes.
template <typename Body>
double seconds(Body&& body) {
  const auto start = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace mxjit::bench
