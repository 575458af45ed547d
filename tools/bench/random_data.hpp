// Random tensors, made on the device.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "bench/device_program.hpp"
#include "mxjit/context.hpp"

namespace mxjit::bench {

/// Fills bf16 `elements` at `out` with standard normal values that depend on `seed` and the index alone.
/// Asynchronous.
void fill_normal(const driver::Api& api, const DeviceProgram& program, CUdeviceptr out,
                 std::uint64_t elements, std::uint64_t seed, CUstream stream);

/// Fills `codes` at `out`, of a format e4m3 or e5m2, with normal values that `context` quantizes by blocks of
/// 32. Waits for it.
void fill_normal_codes(Context& context, const DeviceProgram& program, void* out, std::int64_t codes,
                       DType format, std::uint64_t seed, CUstream stream);

}  // namespace mxjit::bench
