// What every suite that measures on a GPU starts with.
#pragma once

#include <memory>

#include "bench/device_program.hpp"
#include "bench/machine.hpp"
#include "driver/device_context.hpp"

namespace mxjit::bench {

/// The current device, its context current in this thread while this lives.
struct Gpu {
  /// Throws Error(unavailable) that names the suite where there is no GPU.
  explicit Gpu(const char* suite);

  const driver::Api& api;
  std::shared_ptr<const driver::DeviceContext> device;
  driver::ScopedCurrent current;
  DeviceProgram program;
  Clocks clocks;
};

}  // namespace mxjit::bench
