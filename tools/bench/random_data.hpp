// Random tensors, made on the device.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "bench/device_program.hpp"

namespace mxjit::bench {

/// Fills bf16 `elements` at `out` with standard normal values that depend on `seed` and the index alone.
/// Asynchronous.
void fill_normal(const driver::Api& api, const DeviceProgram& program, CUdeviceptr out,
                 std::uint64_t elements, std::uint64_t seed, CUstream stream);

}  // namespace mxjit::bench
