// The SwiGLU epilogue.
#pragma once

#include "gemm/params.cuh"

namespace mxjit {

enum class Epilogue { none, swiglu, swiglu_interleaved };

/// gate / (1 + exp(-alpha * gate)) * up. Comparisons that are false for NaN, so that it stays. A quotient
/// that fp32 does not reach, but double does, is not zero to an infinite up.
__device__ __forceinline__ float swiglu(const GemmOutput& output, float gate, float up) {
  const float limit = output.swiglu_limit;
  gate = gate > limit ? limit : gate;
  up = up > limit ? limit : up;
  up = up < -limit ? -limit : up;
  constexpr float largest_power = 709.0f;
  const float power = -output.swiglu_alpha * gate;
  float quotient = __fdiv_rn(gate, 1.0f + expf(power));
  if (quotient == 0.0f && power < largest_power && fabsf(up) == __uint_as_float(0x7F800000)) quotient = gate;
  return quotient * (up + output.swiglu_shift);
}

}  // namespace mxjit
