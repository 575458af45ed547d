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

/// Two fp16 numbers of two FP8 bytes, exactly.
__device__ __forceinline__ u32 cvt_f16x2_e4m3x2(u16 bytes) {
  u32 halves;
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(halves) : "h"(bytes));
  return halves;
}

__device__ __forceinline__ u32 cvt_f16x2_e5m2x2(u16 bytes) {
  u32 halves;
  asm("cvt.rn.f16x2.e5m2x2 %0, %1;" : "=r"(halves) : "h"(bytes));
  return halves;
}

/// Two numbers rounded to nearest even, `low` in the low half.
__device__ __forceinline__ u32 cvt_bf16x2_f32(float low, float high) {
  u32 packed;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  return packed;
}

__device__ __forceinline__ u32 cvt_f16x2_f32(float low, float high) {
  u32 packed;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  return packed;
}

/// Towards zero.
__device__ __forceinline__ float cvt_rz_f32_f64(double wide) {
  float narrow;
  asm("cvt.rz.f32.f64 %0, %1;" : "=f"(narrow) : "d"(wide));
  return narrow;
}

__device__ __forceinline__ float cvt_f32_f16(u16 half) {
  float wide;
  asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(half));
  return wide;
}

}  // namespace mxjit::ptx
