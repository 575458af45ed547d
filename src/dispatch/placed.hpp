// Tensors for a problem that is launched for the sake of what it takes: drills, measurements, tests.
#pragma once

#include <map>
#include <string>

#include "dispatch/run.hpp"
#include "driver/device_buffer.hpp"

namespace mxjit::dispatch {

struct PlacedTensors {
  std::map<std::string, driver::DeviceBuffer> buffers;  // a tensor may lie a few bytes into its own
  DeviceTensors tensors;
};

/// The tensors of a concrete problem with every default written out, without those that are optional, placed
/// exactly as it promises (pitches and alignments select kernels) and zeroed on `stream`. Throws
/// Error(driver) where memory does not suffice.
PlacedTensors place(const driver::Api& api, const problem::Problem& problem, CUstream stream);

}  // namespace mxjit::dispatch
