// Device code of the benchmarks themselves (copies, random data), compiled with NVRTC when a suite starts.
#pragma once

#include <cuda.h>

#include <string>
#include <vector>

#include "driver/driver.hpp"

namespace mxjit::bench {

class DeviceProgram {
 public:
  /// Compiles `source`, which has a kernel "empty", for `target` ("sm_90a") and loads it into the current
  /// context. Throws Error(compile_failed) with NVRTC's log, Error(unavailable) without NVRTC.
  DeviceProgram(const driver::Api& api, const std::string& source, const std::string& target);
  ~DeviceProgram();
  DeviceProgram(const DeviceProgram&) = delete;
  DeviceProgram& operator=(const DeviceProgram&) = delete;

  /// The extern "C" kernel `name`. Throws Error(driver).
  CUfunction function(const char* name) const;

 private:
  const driver::Api& api_;
  CUlibrary library_ = nullptr;
};

/// Launches a one-dimensional grid; `params` points at the kernel's arguments.
void launch_grid(const driver::Api& api, CUfunction function, unsigned blocks, unsigned threads,
                 CUstream stream, std::vector<void*> params);

}  // namespace mxjit::bench
