// The GEMM entry: D = alpha * decode(A) * decode(B)^T + beta * C + bias, rounded once.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>

#include "mxjit/types.hpp"

namespace mxjit {

/// How an operand is scaled. Block::Kind tensor, row and k go with fp32; extents are {1, 128} and {128, 128}
/// with fp32, {1, 32}, {1, 128}, {32, 32} and {128, 128} with mx, written across and along the contraction.
struct OperandScale {
  Scaling scaling = Scaling::fp32;
  Block block{.kind = Block::Kind::tensor};
  ScaleLayout layout = ScaleLayout::plain;  ///< mn_major: fp32 extents; blocked: mx
};

/// What becomes of the product's N columns, bias included, before they are rounded. SwiGLU makes N / 2
/// columns of them, gate / (1 + exp(-swiglu_alpha * gate)) * up: gate is the first half of the columns and up
/// the second, or, interleaved, they alternate. With a swiglu_limit gate is cut at it, up at it on both
/// sides, and up + 1 multiplies.
enum class Epilogue : std::uint8_t { none, swiglu, swiglu_interleaved };

/// D in e4m3 with a scale for every block of a row's columns, chosen as quantize chooses it for the fp32
/// value of D. Block {1, 32} with mx; {1, 128} with fp32, in layout plain or mn_major.
struct Requant {
  Scaling scaling = Scaling::mx;
  Block block{};
  Rounding rounding = Rounding::rceil;
  ScaleLayout layout = ScaleLayout::plain;
};

/// What a GEMM multiplies and how it adds up. Every field selects a kernel; none is a value.
struct GemmOptions {
  std::optional<OperandScale> a_scale;  ///< none: the elements are the values
  std::optional<OperandScale> b_scale;
  bool a_mn_major = false;  ///< a is stored as (K, M), or (B, K, M)
  bool b_mn_major = false;  ///< b is stored as (K, N), or (B, K, N)
  /// fast: not with mx or bf16.
  Accumulation accumulation = Accumulation::promote;
  /// bf16, fp16, fp32 or e4m3. e4m3 is D divided by d_scale and saturated, or, with `requant`, by the scales
  /// of its blocks.
  DType output = DType::bf16;
  std::optional<Requant> requant{};  ///< only with e4m3
  bool amax = false;                 ///< D's largest magnitude before it is rounded goes to args.amax
  Epilogue epilogue = Epilogue::none;
  /// A row's bits depend on neither M nor the other rows: one tile and one order of sums whatever M.
  bool batch_invariant = false;
};

/// The tensors and factors of one call, all tensors in memory of the context's device. M, N and K are at
/// least 0; without a contraction D is beta * C + bias. Both operands may be 3D: then d is, and an extent of
/// 1 is one matrix for the whole batch. Bases and pitches of a and b that are multiples of 16 bytes are fast,
/// with SwiGLU if N is a multiple of 16, too (of 256 where gate and up are halves of a b in blocks {128,
/// 128}); others are right. An output overlaps no other tensor, except that c may be d itself. Tensors that
/// the options do not ask for stay empty.
struct GemmArgs {
  Tensor a;        ///< e4m3, e5m2 or bf16; (M, K) or (B, M, K), or as a_mn_major stores it
  Tensor a_scale;  ///< packed. tensor (1); row (M) or (B, M); k (K) or (B, K); a scale a block:
                   ///< (ceil(M/rows), ceil(K/cols)), B before it; mn_major: transposed, inner extent padded
                   ///< to a multiple of 4; blocked: 1-D
  Tensor b;        ///< e4m3, e5m2 or bf16; (N, K) or (B, N, K)
  Tensor b_scale;  ///< as a_scale, with N
  Tensor d;        ///< options.output; (M, N) or (B, M, N); N / 2 columns after SwiGLU
  Tensor c;        ///< d's dtype and shape; read where beta is not 0
  Tensor bias;     ///< bf16, fp16 or fp32; (N). Empty: none
  float alpha = 1.0F;
  float beta = 0.0F;  ///< 0 with an output of e4m3 and with an epilogue
  Tensor d_scale{};   ///< output e4m3 without requant: fp32, (1), or one a row of d: (M) or (B, M). Decodes
  /// With requant. mx: e8m0 or u8, plain (M, ceil(N/32)), B before it, or blocked, 1-D, B after B. fp32:
  /// plain (M, ceil(N/128)), or mn_major (ceil(N/128), M rounded up to a multiple of 4), B before it. N: d's
  /// columns.
  Tensor d_scales{};
  Tensor amax{};  ///< with options.amax: fp32 (1), written by every call; NaN where d holds one
  /// Requant with fp32: what a block's largest magnitude is cut at before its scale is chosen.
  float amax_cap = std::numeric_limits<float>::infinity();
  float swiglu_alpha = 1.0F;
  std::optional<float> swiglu_limit{};
};

}  // namespace mxjit
