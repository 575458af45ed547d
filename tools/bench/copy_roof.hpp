// The copy roof: what the plainest kernel that reads and writes memory reaches, measured beside everything
// else.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/device_program.hpp"
#include "bench/device_timer.hpp"
#include "bench/result.hpp"

namespace mxjit::bench {

class CopyRoof {
 public:
  /// Times every copy kernel at 256 MiB, 512 MiB and 1 GiB and keeps the fastest kernel and size.
  CopyRoof(const driver::Api& api, const DeviceProgram& program, int rounds);

  /// Adds the kept copy, and one of 64 MiB, to the jobs of `timer`; `collect` takes their samples after
  /// DeviceTimer::measure.
  void add_to(DeviceTimer& timer);
  void collect(const DeviceTimer& timer);
  /// Adds a copy that reads plus writes `bytes` (at most 4 GiB), over rotating buffers larger than L2.
  std::size_t add_same_bytes(DeviceTimer& timer, double bytes) const;

  /// From all samples collected.
  Roofs roofs() const;
  /// The kept kernel and every figure of the choice, for people.
  const std::string& how() const { return how_; }

 private:
  std::size_t add_copy(DeviceTimer& timer, CUfunction kernel, int unroll, std::uint64_t bytes_each_way) const;

  const driver::Api& api_;
  driver::DeviceBuffer from_;
  driver::DeviceBuffer to_;
  CUfunction kernel_ = nullptr;
  int unroll_ = 0;
  std::uint64_t bytes_ = 0;  // each way, of the kept copy
  std::string how_;
  std::size_t roof_job_ = 0;
  std::size_t small_job_ = 0;
  std::vector<double> roof_samples_;
  std::vector<double> small_samples_;
};

}  // namespace mxjit::bench
