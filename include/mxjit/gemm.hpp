// The GEMM entry: D = alpha * decode(A) * decode(B)^T + beta * C + bias, rounded once.
#pragma once

#include <optional>

#include "mxjit/types.hpp"

namespace mxjit {

/// How an operand is scaled. Block::Kind tensor and row go with fp32; extents are {1, 128} and {128, 128}
/// with fp32, {1, 32}, {1, 128}, {32, 32} and {128, 128} with mx, written across and along the contraction.
struct OperandScale {
  Scaling scaling = Scaling::fp32;
  Block block{.kind = Block::Kind::tensor};
  ScaleLayout layout = ScaleLayout::plain;  ///< mn_major: fp32 extents; blocked: mx
};

/// What a GEMM multiplies and how it adds up. Every field selects a kernel; none is a value.
struct GemmOptions {
  std::optional<OperandScale> a_scale;  ///< none: the elements are the values
  std::optional<OperandScale> b_scale;
  bool a_mn_major = false;  ///< a is stored as (K, M), or (B, K, M)
  bool b_mn_major = false;  ///< b is stored as (K, N), or (B, K, N)
  /// fast: not with mx or bf16.
  Accumulation accumulation = Accumulation::promote;
  DType output = DType::bf16;  ///< bf16, fp16 or fp32
};

/// The tensors and factors of one call, all tensors in memory of the context's device. M, N and K are at
/// least 0; without a contraction D is beta * C + bias. Both operands may be 3D: then d is, and an extent of
/// 1 is one matrix for the whole batch. Bases and pitches of a and b that are multiples of 16 bytes are fast,
/// others are right. d overlaps no other tensor, except that c may be d itself.
struct GemmArgs {
  Tensor a;  ///< e4m3, e5m2 or bf16; (M, K) or (B, M, K), or as a_mn_major stores it
  Tensor
      a_scale;  ///< packed. tensor (1); row (M) or (B, M); a scale a block: (ceil(M/rows), ceil(K/cols)),
                ///< B before it; mn_major: transposed, inner extent padded to a multiple of 4; blocked: 1-D
  Tensor b;     ///< e4m3, e5m2 or bf16; (N, K) or (B, N, K)
  Tensor b_scale;  ///< as a_scale, with N
  Tensor d;        ///< options.output; (M, N) or (B, M, N)
  Tensor c;        ///< d's dtype and shape; read where beta is not 0
  Tensor bias;     ///< bf16, fp16 or fp32; (N). Empty: none
  float alpha = 1.0F;
  float beta = 0.0F;
};

}  // namespace mxjit
