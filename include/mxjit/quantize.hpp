// The quantize entry: what to produce and where the tensors lie.
#pragma once

#include <cstdint>

#include "mxjit/types.hpp"

namespace mxjit {

/// What a quantization produces. Numerics: README.md of include/mxjit. Every field selects a kernel; none is
/// a value.
struct QuantizeOptions {
  DType format = DType::e4m3;  ///< e4m3 or e5m2
  Scaling scaling = Scaling::mx;
  Block block;  ///< mx: {1,32}, {1,128}, {32,32}, {128,128}
  Rounding rounding = Rounding::rceil;
  ScaleLayout scale_layout = ScaleLayout::plain;
  Axes axes;
};

/// The tensors of one call, all in memory of the context's device. Logical input shape (M, N), M >= 0, N >=
/// 0, or (E, M, N).
struct QuantizeArgs {
  Tensor x;      ///< bf16, fp16 or fp32; (M, N) row-major
  Tensor q_row;  ///< format; (M, N) row-major. Only with axes.row
  Tensor s_row;  ///< e8m0 or u8. plain (M, ceil(N/32)); blocked: 1-D, ceil128(M) * ceil4(ceil(N/32)) bytes
  Tensor q_col;  ///< format; (N, M) row-major: the transposed data. Only with axes.col
  Tensor s_col;  ///< e8m0 or u8. plain (N, ceil(M/32)); blocked: 1-D, ceil128(N) * ceil4(ceil(M/32)) bytes
};

}  // namespace mxjit
