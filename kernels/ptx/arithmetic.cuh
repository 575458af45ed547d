// Arithmetic that C++ has no operator for: one wrapper per instruction. None flushes subnormal numbers that
// does not say so.
#pragma once

#include "ptx/types.cuh"

namespace mxjit::ptx {

/// Largest magnitude of each half, NaN winning; the sign bits of the result mean nothing.
__device__ __forceinline__ u32 max_abs_bf16x2(u32 a, u32 b) {
  u32 result;
  asm("max.NaN.xorsign.abs.bf16x2 %0, %1, %2;" : "=r"(result) : "r"(a), "r"(b));
  return result;
}

__device__ __forceinline__ u32 max_abs_f16x2(u32 a, u32 b) {
  u32 result;
  asm("max.NaN.xorsign.abs.f16x2 %0, %1, %2;" : "=r"(result) : "r"(a), "r"(b));
  return result;
}

__device__ __forceinline__ u32 max_abs_f32(u32 a, u32 b) {
  u32 result;
  asm("{ .reg .f32 a, b, c;\n mov.b32 a, %1;\n mov.b32 b, %2;\n max.NaN.xorsign.abs.f32 c, a, b;\n"
      " mov.b32 %0, c; }"
      : "=r"(result)
      : "r"(a), "r"(b));
  return result;
}

__device__ __forceinline__ u32 mul_bf16x2(u32 a, u32 b) {
  u32 result;
  asm("mul.rn.bf16x2 %0, %1, %2;" : "=r"(result) : "r"(a), "r"(b));
  return result;
}

__device__ __forceinline__ u32 fma_bf16x2(u32 a, u32 b, u32 c) {
  u32 result;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(result) : "r"(a), "r"(b), "r"(c));
  return result;
}

/// max(a + b, 0) of each signed half.
__device__ __forceinline__ u32 add_relu_s16x2(u32 a, u32 b) {
  u32 result;
  asm("{ .reg .b32 sum, zero;\n add.s16x2 sum, %1, %2;\n mov.b32 zero, 0;\n max.s16x2.relu %0, sum, zero; }"
      : "=r"(result)
      : "r"(a), "r"(b));
  return result;
}

__device__ __forceinline__ u32 min_u16x2(u32 a, u32 b) {
  u32 result;
  asm("min.u16x2 %0, %1, %2;" : "=r"(result) : "r"(a), "r"(b));
  return result;
}

/// min(a + b, c) of each unsigned half; the sum wraps.
__device__ __forceinline__ u32 add_min_u16x2(u32 a, u32 b, u32 c) {
  u32 result;
  asm("{ .reg .b32 sum;\n add.u16x2 sum, %1, %2;\n min.u16x2 %0, sum, %3; }"
      : "=r"(result)
      : "r"(a), "r"(b), "r"(c));
  return result;
}

/// max(a + b, c), likewise.
__device__ __forceinline__ u32 add_max_u16x2(u32 a, u32 b, u32 c) {
  u32 result;
  asm("{ .reg .b32 sum;\n add.u16x2 sum, %1, %2;\n max.u16x2 %0, sum, %3; }"
      : "=r"(result)
      : "r"(a), "r"(b), "r"(c));
  return result;
}

/// The smaller and the larger number, NaN winning.
__device__ __forceinline__ float min_nan_f32(float a, float b) {
  float result;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
}

__device__ __forceinline__ float max_nan_f32(float a, float b) {
  float result;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
}

/// 2^a, wrong by at most 2^-22 of it. Flushes what is subnormal.
__device__ __forceinline__ float ex2_approx(float a) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(a));
  return result;
}

/// 1 / a, wrong by at most a unit of the last place. Flushes what is subnormal.
__device__ __forceinline__ float rcp_approx(float a) {
  float result;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(a));
  return result;
}

/// Four bytes of the eight in (high, low), chosen by the digits of `selector`.
__device__ __forceinline__ u32 prmt(u32 low, u32 high, u32 selector) {
  u32 result;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(result) : "r"(low), "r"(high), "r"(selector));
  return result;
}

}  // namespace mxjit::ptx
