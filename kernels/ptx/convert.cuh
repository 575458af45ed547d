// Conversions: one wrapper per instruction.
#pragma once

#include "ptx/types.cuh"

namespace mxjit::ptx {

/// FP8 bytes of four numbers, the first in the low byte: rounded to nearest even, saturated, NaN as 0x7F.
__device__ __forceinline__ u32 cvt_e4m3x4(float a, float b, float c, float d) {
  u32 bytes;
  asm("{ .reg .b16 low, high;\n cvt.rn.satfinite.e4m3x2.f32 low, %2, %1;\n"
      " cvt.rn.satfinite.e4m3x2.f32 high, %4, %3;\n mov.b32 %0, {low, high}; }"
      : "=r"(bytes)
      : "f"(a), "f"(b), "f"(c), "f"(d));
  return bytes;
}

__device__ __forceinline__ u32 cvt_e5m2x4(float a, float b, float c, float d) {
  u32 bytes;
  asm("{ .reg .b16 low, high;\n cvt.rn.satfinite.e5m2x2.f32 low, %2, %1;\n"
      " cvt.rn.satfinite.e5m2x2.f32 high, %4, %3;\n mov.b32 %0, {low, high}; }"
      : "=r"(bytes)
      : "f"(a), "f"(b), "f"(c), "f"(d));
  return bytes;
}

__device__ __forceinline__ float cvt_f32_f16(u16 half) {
  float wide;
  asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(half));
  return wide;
}

}  // namespace mxjit::ptx
