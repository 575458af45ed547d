// Every property of a GEMM call that can be checked without looking at device memory.
#pragma once

#include "driver/device_context.hpp"
#include "mxjit/gemm.hpp"

namespace mxjit::dispatch {

/// The extents of a checked call; batch is 1 for 2D operands.
struct GemmSizes {
  std::int64_t batch = 1, m = 0, n = 0, k = 0;
};

/// Options that belong together. Throws Error(invalid_argument) naming the field, what is allowed and what
/// came.
void check_options(const GemmOptions& options);

/// The tensors of a call with valid options: dtypes, ranks, shapes, scale shapes, pitches, null pointers,
/// element alignment, sizes past int64, d over another tensor, scales or C that nothing asks for. Throws
/// Error(invalid_argument) naming the tensor, what was expected and what came.
GemmSizes check_gemm(const GemmOptions& options, const GemmArgs& args);

/// As check_pointers of quantize.
void check_pointers(const driver::DeviceContext& device, const GemmArgs& args);

}  // namespace mxjit::dispatch
