// The quantize entry: what to produce and where the tensors lie.
#pragma once

#include <cstdint>

#include "mxjit/types.hpp"

namespace mxjit {

/// Groups of rows along M, such as the tokens of each expert. Their ends stay on the device.
struct Groups {
  std::int32_t count = 0;        ///< 0: no groups; at most 1024
  std::int32_t alignment = 128;  ///< what every group's size is a multiple of: 128, 32 or 1
};

/// What a quantization produces. Numerics: README.md of include/mxjit. Every field selects a kernel; none is
/// a value.
struct QuantizeOptions {
  DType format = DType::e4m3;  ///< e4m3 or e5m2
  Scaling scaling = Scaling::mx;
  Block block{};  ///< mx: {1,32}, {1,128}, {32,32}, {128,128}
  Rounding rounding = Rounding::rceil;
  ScaleLayout scale_layout = ScaleLayout::plain;
  Axes axes{};
  Groups groups{};                ///< of 2D problems whose input is not transposed
  bool transposed_input = false;  ///< x is stored as (N, M), or (E, N, M); all else keeps its meaning
};

/// The tensors of one call, all in memory of the context's device. Logical input shape (M, N), M >= 0, N >=
/// 0, or (E, M, N): then every output has the leading extent E, but for blocked scales, which stay 1-D, one
/// expert after another. No output may overlap another tensor; tensors of an axis that is not asked for stay
/// empty.
struct QuantizeArgs {
  Tensor x{};      ///< bf16, fp16 or fp32; (M, N) row-major, or (N, M) with transposed_input
  Tensor q_row{};  ///< format; (M, N) row-major. Only with axes.row
  Tensor s_row{};  ///< e8m0 or u8. plain (M, ceil(N/32)); blocked: 1-D, ceil128(M) * ceil4(ceil(N/32)) bytes
  Tensor q_col{};  ///< format; (N, M) row-major: the transposed data. Only with axes.col
  Tensor s_col{};  ///< e8m0 or u8. plain (N, ceil(M/32)); blocked: 1-D, ceil128(N) * ceil4(ceil(M/32)) bytes
  /// With groups: i32 (count), on the device; group g covers rows offsets[g-1] (0 for the first) to
  /// offsets[g] - 1. Blocked scales then are, for s_row with an alignment below 128, (M + 128 * count) *
  /// ceil4(ceil(N/32)) bytes, each group from a multiple of 128 rows; for s_col, ceil128(N) * (ceil(M/32) + 4
  /// * count) bytes, each group a blocked matrix of its own width. What no group owns is zero.
  Tensor offsets{};
  /// With groups, optional: i32 (4), on the device, zeroed by the caller. The first fault found in offsets
  /// stays there: {1 falls, 2 leaves [0, M], 3 breaks the alignment; group; its end; 0}.
  Tensor status{};
};

}  // namespace mxjit
