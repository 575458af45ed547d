// Element types of the GEMM kernels, and moving one element between memory and fp32.
#pragma once

#include "ptx/types.cuh"

namespace mxjit {

enum class Element { none, e4m3, e5m2, bf16, fp16, fp32 };

__device__ __forceinline__ float widen_bf16(u16 value) { return __uint_as_float(u32{value} << 16); }

__device__ __forceinline__ float widen_fp16(u16 value) {
  float wide;
  asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(value));
  return wide;
}

/// Element `at` of an array of bf16, fp16 or fp32. C may be D itself, so not through the read-only cache.
template <Element type>
__device__ __forceinline__ float load_element(const void* from, i64 at) {
  if constexpr (type == Element::fp32) {
    return static_cast<const float*>(from)[at];
  } else if constexpr (type == Element::bf16) {
    return widen_bf16(static_cast<const u16*>(from)[at]);
  } else {
    return widen_fp16(static_cast<const u16*>(from)[at]);
  }
}

/// Two values rounded to 16 bits, `low` in the low half.
template <Element type>
__device__ __forceinline__ u32 pack_pair(float low, float high) {
  u32 packed;
  if constexpr (type == Element::bf16) {
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  } else {
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  }
  return packed;
}

template <Element type>
__device__ __forceinline__ void store_element(void* to, i64 at, float value) {
  if constexpr (type == Element::fp32) {
    static_cast<float*>(to)[at] = value;
  } else {
    static_cast<u16*>(to)[at] = static_cast<u16>(pack_pair<type>(value, 0.0f));
  }
}

}  // namespace mxjit
