// The SwiGLU epilogue.
#pragma once

#include "gemm/params.cuh"
#include "ptx/arithmetic.cuh"

namespace mxjit {

enum class Epilogue { none, swiglu, swiglu_interleaved };

/// Two product columns, a gate and an up, make one of D.
template <class Config>
inline constexpr bool gated = Config::epilogue != Epilogue::none;

/// B holds all gates before all ups.
template <class Config>
inline constexpr bool halves = Config::epilogue == Epilogue::swiglu;

/// Where product column `column` of `n` lies in B: gates and ups come in turns.
template <bool halves, class Int>
__device__ __forceinline__ Int source_column(Int column, Int n) {
  return halves ? column / 2 + column % 2 * (n / 2) : column;
}

/// The Hopper kernel's tiles take eight gates and their ups in turns, so that a thread has both sums: where
/// the column at `place` lies in B.
template <class Config>
__device__ __forceinline__ i32 source_of_place(i32 place, i32 n) {
  if constexpr (!gated<Config>) return place;
  const i32 gate = place / 16 * 8 + place % 8;
  return source_column<halves<Config>>(gate * 2 + place / 8 % 2, n);
}

/// gate / (1 + exp(-alpha * gate)) * up, without a branch, so that the instructions of many fill each other's
/// gaps. Comparisons that are false for NaN, so that it stays. A quotient that fp32 does not reach, or
/// not with all its digits, but double does, is not zero to an infinite up; to a finite one it is.
__device__ __forceinline__ float swiglu(const GemmOutput& output, float gate, float up) {
  const float limit = output.swiglu_limit;
  gate = gate > limit ? limit : gate;
  up = up > limit ? limit : up;
  up = up < -limit ? -limit : up;
  constexpr float largest_power = 709.0f;
  const float power = -output.swiglu_alpha * gate;
  float quotient = gate * ptx::rcp_approx(1.0f + expf(power));
  if (quotient == 0.0f && power < largest_power && fabsf(up) == __uint_as_float(0x7F800000)) quotient = gate;
  return quotient * (up + output.swiglu_shift);
}

}  // namespace mxjit
