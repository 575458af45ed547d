// Conversions: one wrapper per instruction.
#pragma once

#include "ptx/types.cuh"

namespace mxjit::ptx {

/// FP8 pair in the low 16 bits, `low` in the low byte; rounds to nearest even and saturates; NaN is 0x7F.
__device__ __forceinline__ u16 cvt_e4m3x2(float low, float high) {
  u16 pair;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(high), "f"(low));
  return pair;
}

__device__ __forceinline__ u16 cvt_e5m2x2(float low, float high) {
  u16 pair;
  asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(high), "f"(low));
  return pair;
}

__device__ __forceinline__ float cvt_f32_f16(u16 half) {
  float wide;
  asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(half));
  return wide;
}

}  // namespace mxjit::ptx
