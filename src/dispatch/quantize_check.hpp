// Every property of a quantize call that can be checked without looking at device memory.
#pragma once

#include "dispatch/quantize_key.hpp"
#include "dispatch/tensor_check.hpp"
#include "driver/device_context.hpp"
#include "mxjit/quantize.hpp"

namespace mxjit::dispatch {

/// Options that belong together: format, scaling, block, rounding, layout and axes. Throws
/// Error(invalid_argument) naming the field, what is allowed and what came.
void check_options(const QuantizeOptions& options);

/// The input's dtype, rank and extents, not its memory. Throws as check_quantize does.
void check_input(const Tensor& x);

/// The tensors of a call with valid options: dtypes, ranks, shapes, pitches, null pointers, element
/// alignment, sizes past int64, outputs that overlap each other or the input, tensors of an axis that is not
/// asked for. Throws Error(invalid_argument) naming the tensor, what was expected and what came.
void check_quantize(const QuantizeOptions& options, const QuantizeArgs& args);

/// Asks the driver whose memory each tensor of a checked call lies in. Throws Error(invalid_argument) naming
/// the first that the driver does not know or that is another device's.
void check_pointers(const driver::DeviceContext& device, const QuantizeOptions& options,
                    const QuantizeArgs& args);

}  // namespace mxjit::dispatch
