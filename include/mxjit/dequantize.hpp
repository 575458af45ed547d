// The dequantize entry: FP8 data and its scales back to numbers.
#pragma once

#include "mxjit/quantize.hpp"
#include "mxjit/types.hpp"

namespace mxjit {

/// How the data was quantized. Every field selects a kernel; none is a value.
struct DequantizeOptions {
  Scaling scaling = Scaling::mx;
  Block block{};  ///< as QuantizeOptions::block; with fp32 {1,128}, {128,128}, row or tensor
  ScaleLayout scale_layout = ScaleLayout::plain;
  bool axis_col = false;  ///< q and s are q_col and s_col of a quantization, else q_row and s_row
  Groups groups{};        ///< of 2D problems; not with block tensor
};

/// The tensors of one call, all in memory of the context's device. The logical shape is (M, N), M >= 0, N >=
/// 0, or (E, M, N); shapes of q and s are those of QuantizeArgs. x = q * s in fp32, rounded once to x's dtype
/// (nearest even; overflow is an infinity). x overlaps no other tensor. Pitches and
/// bases that are multiples of 8 bytes (q) and 16 bytes (x) are fast, others are right.
struct DequantizeArgs {
  Tensor q;  ///< e4m3 or e5m2; (M, N), or (N, M) with axis_col, E before it
  Tensor s;  ///< packed; e8m0 or u8 with mx, else fp32. With groups as QuantizeArgs says; fp32 row of
             ///< axis_col with groups: (count, N)
  Tensor x;  ///< bf16, fp16 or fp32; (M, N) or (E, M, N). Zero where an element's scale belongs to a group
             ///< and none owns it: blocked scales of axis_col or of an alignment below 128, and (count, N)
  Tensor offsets;   ///< with groups: i32 (count), the ends of groups along M, on the device
  Tensor status{};  ///< with groups, optional: as QuantizeArgs::status. Only where the groups place scales
};

}  // namespace mxjit
