// Names and versions of what a suite runs on, and the clocks while it runs.
#pragma once

#include <cuda.h>

#include <vector>

#include "bench/result.hpp"
#include "driver/driver.hpp"

namespace mxjit::bench {

/// GPU, driver and CUDA version of `device`; `api` is the real driver.
Machine describe_machine(const driver::Api& api, CUdevice device);
/// The first clause of a reason such as driver::why_no_gpu(), which lists its attempts on further lines.
std::string first_clause(const std::string& text);
/// NVRTC's version, or an empty string where there is none.
std::string nvrtc_version();

/// Reads a GPU's clocks through NVML, opened at run time. Where NVML is missing, nothing is read.
class Clocks {
 public:
  explicit Clocks(CUdevice device);

  /// Takes one reading. Meant to be called while the GPU works.
  void read();
  /// Puts the median of the readings into `machine`.
  void report(Machine& machine) const;

 private:
  using GetClock = int (*)(void* device, int kind, unsigned* mhz);
  GetClock get_clock_ = nullptr;
  void* device_ = nullptr;
  std::vector<double> sm_;
  std::vector<double> memory_;
};

}  // namespace mxjit::bench
