// The quantize entry: what to produce and where the tensors lie.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "mxjit/types.hpp"

namespace mxjit {

/// Groups of rows along M, such as the tokens of each expert. Their ends stay on the device.
struct Groups {
  std::int32_t count = 0;        ///< 0: no groups; at most 1024
  std::int32_t alignment = 128;  ///< what every group's size is a multiple of: 128, 32 or 1
};

/// What happens to x before it is quantized. The value, computed in double and rounded once to bf16, is what
/// is quantized. swiglu: gate * sigmoid(alpha * gate) * up, gate and up being the halves of x's rows;
/// swiglu_interleaved: they alternate, gate first. rmsnorm: x / sqrt(mean of the row's squares + eps) *
/// weight; the squares are added in any order, which may decide what lies in the middle between two numbers.
enum class Pre : std::uint8_t { none, swiglu, swiglu_interleaved, rmsnorm };

/// What a quantization produces. Numerics: README.md of include/mxjit. Every field selects a kernel; none is
/// a value.
struct QuantizeOptions {
  DType format = DType::e4m3;  ///< e4m3 or e5m2
  Scaling scaling = Scaling::mx;
  Block block{};  ///< mx: {1,32}, {1,128}, {32,32}, {128,128}; fp32: {1,128}, {128,128}, kind row or tensor
  Rounding rounding = Rounding::rceil;
  ScaleLayout scale_layout = ScaleLayout::plain;
  Axes axes{};
  Groups groups{};                ///< of 2D problems
  bool transposed_input = false;  ///< x is stored as (N, M), or (E, N, M); all else keeps its meaning
  Pre pre = Pre::none;            ///< with SwiGLU x has 2 * N columns, every output N
  bool emit_high = false;         ///< the value before quantization goes to args.y, too
};

/// The tensors of one call, all in memory of the context's device. Logical input shape (M, N), M >= 0, N >=
/// 0, or (E, M, N): then every output has the leading extent E, but for blocked scales, which stay 1-D, one
/// expert after another. With SwiGLU x is (M, 2 * N), or (2 * N, M) transposed, and so on. No output may
/// overlap another tensor; tensors of an axis that is not asked for stay empty.
struct QuantizeArgs {
  Tensor x{};      ///< bf16, fp16 or fp32; (M, N) row-major, or (N, M) with transposed_input
  Tensor q_row{};  ///< format; (M, N) row-major. Only with axes.row
  /// mx: e8m0 or u8; plain (M, ceil(N/32)); blocked: 1-D, ceil128(M) * ceil4(ceil(N/32)) bytes. fp32: fp32;
  /// blocks of 128: plain (M, ceil(N/128)), [128,128]: (ceil(M/128), ceil(N/128)); mn_major: that matrix
  /// transposed, its rows zero-padded to a multiple of 4; row: (M); tensor: (1), without E
  Tensor s_row{};
  Tensor q_col{};  ///< format; (N, M) row-major: the transposed data. Only with axes.col
  /// As s_row, with N across and M along the blocks. row: (N), a scale a column; with groups (count, N): a
  /// scale a column inside each group, whatever its size, and q_col is zero where no group owns a row
  Tensor s_col{};
  /// With groups: i32 (count), on the device; group g covers rows offsets[g-1] (0 for the first) to
  /// offsets[g] - 1. Blocked scales then are, for s_row with an alignment below 128, (M + 128 * count) *
  /// ceil4(ceil(N/32)) bytes, each group from a multiple of 128 rows; for s_col, ceil128(N) * (ceil(M/32) + 4
  /// * count) bytes, each group a blocked matrix of its own width. What no group owns is zero.
  Tensor offsets{};
  /// With groups, optional: i32 (4), on the device, zeroed by the caller. The first fault found in offsets
  /// stays there: {1 falls, 2 leaves [0, M], 3 breaks the alignment; group; its end; 0}.
  Tensor status{};
  /// fp32: no largest magnitude counts as more than this in a scale, and what it cuts off saturates. 0: no
  /// cap.
  float amax_cap = 0.0F;
  /// u8, 1-D, workspace_size() bytes or more, the base a multiple of 256. What it holds does not matter, nor
  /// what it holds afterwards; calls that may run at the same time each need their own. Empty where the size
  /// is 0.
  Tensor workspace{};
  Tensor y{};       ///< with emit_high: bf16; (M, N) row-major, whatever the input's layout
  Tensor weight{};  ///< with rmsnorm: x's dtype; (N)
  double swiglu_alpha = 1.0;
  /// gpt-oss's form: gate at most this, up within it on both sides, and up + 1 in place of up. Whether there
  /// is one selects a kernel. One that fp32 has no number for is right and slow.
  std::optional<double> swiglu_limit{};
  double rms_eps = 1e-6;
};

/// Bytes of workspace that a call needs with these options and an input of this dtype and shape (pitch and
/// data do not matter). It never falls as an extent grows: the largest input of a workload sizes it for all.
/// 0 but for float scales of columns and of the tensor, and for RMSNorm - unless of rows alone, not
/// transposed, with a float scale each or, without groups, with MX blocks {1,32} or float blocks {1,128}.
/// Throws Error(invalid_argument) as quantize() does.
MXJIT_API std::size_t workspace_size(const QuantizeOptions& options, const Tensor& x);

}  // namespace mxjit
