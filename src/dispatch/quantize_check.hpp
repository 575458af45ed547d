// Every property of a quantize call that can be checked without looking at device memory.
#pragma once

#include "driver/device_context.hpp"
#include "mxjit/quantize.hpp"

namespace mxjit::dispatch {

/// size_of, known to the inliner: called for every tensor of every launch.
inline std::uint64_t size_of_element(DType dtype) noexcept {
  switch (dtype) {
    case DType::bf16:
    case DType::fp16:
    case DType::u16:
    case DType::i16:
      return 2;
    case DType::fp32:
    case DType::u32:
    case DType::i32:
      return 4;
    case DType::fp64:
    case DType::u64:
    case DType::i64:
      return 8;
    default:
      return 1;
  }
}

/// Elements between consecutive rows, the default of packed rows filled in. Expects a rank of at least 1.
inline std::int64_t row_pitch(const Tensor& tensor) noexcept {
  return tensor.pitch != 0 ? tensor.pitch : tensor.shape[static_cast<std::size_t>(tensor.rank) - 1];
}

/// Options that belong together: format, scaling, block, rounding, layout and axes. Throws
/// Error(invalid_argument) naming the field, what is allowed and what came.
void check_options(const QuantizeOptions& options);

/// The tensors of a call with valid options: dtypes, ranks, shapes, pitches, null pointers, element
/// alignment, sizes past int64, outputs that overlap each other or the input, tensors of an axis that is not
/// asked for. Throws Error(invalid_argument) naming the tensor, what was expected and what came.
void check_quantize(const QuantizeOptions& options, const QuantizeArgs& args);

/// Asks the driver whose memory each tensor of a checked call lies in. Throws Error(invalid_argument) naming
/// the first that the driver does not know or that is another device's.
void check_pointers(const driver::DeviceContext& device, const QuantizeOptions& options,
                    const QuantizeArgs& args);

}  // namespace mxjit::dispatch
