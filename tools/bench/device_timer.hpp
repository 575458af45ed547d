// Device times of several jobs, taken in turn.
#pragma once

#include <functional>
#include <vector>

#include "driver/device_buffer.hpp"

namespace mxjit::bench {

/// Each job is a CUDA graph of `launches` launches. A round replays every job once untimed, so that caches
/// and clocks are as in steady state and the host stays ahead of the device, and once between two events.
class DeviceTimer {
 public:
  explicit DeviceTimer(const driver::Api& api);

  CUstream stream() const { return stream_.get(); }
  /// Captures `launch(i, stream)` for i in [0, launches) and returns the job's number.
  std::size_t add(int launches, const std::function<void(int, CUstream)>& launch);
  /// Replays every job in turn for about `seconds`, so that the clocks are those of such work.
  void settle(double seconds);
  /// Takes `rounds` samples of every job, in turn; `while_busy` runs once a round while the device works.
  void measure(int rounds, const std::function<void()>& while_busy);
  /// Microseconds a launch.
  const std::vector<double>& samples(std::size_t job) const { return jobs_[job].samples; }
  /// Replays a job once and waits for it.
  void replay(std::size_t job);

 private:
  struct Job {
    int launches;
    driver::OwnedGraphExec graph;
    std::vector<double> samples;
  };
  const driver::Api& api_;
  driver::OwnedStream stream_;
  driver::OwnedEvent before_;
  driver::OwnedEvent after_;
  std::vector<Job> jobs_;
};

}  // namespace mxjit::bench
