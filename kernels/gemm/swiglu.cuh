// The SwiGLU epilogue.
#pragma once

#include "gemm/params.cuh"

namespace mxjit {

enum class Epilogue { none, swiglu, swiglu_interleaved };

/// gate / (1 + exp(-alpha * gate)) * up. Comparisons that are false for NaN, so that it stays.
__device__ __forceinline__ float swiglu(const GemmOutput& output, float gate, float up) {
  const float limit = output.swiglu_limit;
  gate = gate > limit ? limit : gate;
  up = up > limit ? limit : up;
  up = up < -limit ? -limit : up;
  return __fdiv_rn(gate, 1.0f + expf(-output.swiglu_alpha * gate)) * (up + output.swiglu_shift);
}

}  // namespace mxjit
