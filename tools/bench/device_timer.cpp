#include "bench/device_timer.hpp"

#include <chrono>

namespace mxjit::bench {

using driver::check;

DeviceTimer::DeviceTimer(const driver::Api& api)
    : api_(api),
      stream_(driver::make_stream(api)),
      before_(driver::make_event(api)),
      after_(driver::make_event(api)) {}

std::size_t DeviceTimer::add(int launches, const std::function<void(int, CUstream)>& launch) {
  check(api_, api_.stream_begin_capture(stream_.get(), CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
        "cuStreamBeginCapture");
  for (int i = 0; i < launches; ++i) launch(i, stream_.get());
  jobs_.push_back({launches, driver::end_capture(api_, stream_.get()), {}});
  return jobs_.size() - 1;
}

void DeviceTimer::settle(double seconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (std::chrono::steady_clock::now() < end)
    for (std::size_t job = 0; job < jobs_.size(); ++job) replay(job);
}

void DeviceTimer::measure(int rounds, const std::function<void()>& while_busy) {
  for (int round = 0; round < rounds; ++round) {
    bool first = true;
    for (Job& job : jobs_) {
      check(api_, api_.graph_launch(job.graph.get(), stream_.get()), "cuGraphLaunch");
      check(api_, api_.event_record(before_.get(), stream_.get()), "cuEventRecord");
      check(api_, api_.graph_launch(job.graph.get(), stream_.get()), "cuGraphLaunch");
      check(api_, api_.event_record(after_.get(), stream_.get()), "cuEventRecord");
      if (first) while_busy();
      first = false;
      check(api_, api_.event_synchronize(after_.get()), "cuEventSynchronize");
      float milliseconds = 0;
      check(api_, api_.event_elapsed_time(&milliseconds, before_.get(), after_.get()), "cuEventElapsedTime");
      job.samples.push_back(static_cast<double>(milliseconds) * 1e3 / job.launches);
    }
  }
}

void DeviceTimer::replay(std::size_t job) {
  check(api_, api_.graph_launch(jobs_[job].graph.get(), stream_.get()), "cuGraphLaunch");
  check(api_, api_.stream_synchronize(stream_.get()), "cuStreamSynchronize");
}

}  // namespace mxjit::bench
