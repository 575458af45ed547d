// Element types of the GEMM kernels, and moving one element between memory and fp32.
#pragma once

#include "ptx/convert.cuh"
#include "ptx/types.cuh"

namespace mxjit {

enum class Element { none, e4m3, e5m2, bf16, fp16, fp32 };

__device__ __forceinline__ float widen_bf16(u16 value) { return __uint_as_float(u32{value} << 16); }

__device__ __forceinline__ float widen_fp16(u16 value) { return ptx::cvt_f32_f16(value); }

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
  return type == Element::bf16 ? ptx::cvt_bf16x2_f32(low, high) : ptx::cvt_f16x2_f32(low, high);
}

/// e4m3 saturates.
template <Element type>
__device__ __forceinline__ void store_element(void* to, i64 at, float value) {
  if constexpr (type == Element::fp32) {
    static_cast<float*>(to)[at] = value;
  } else if constexpr (type == Element::e4m3) {
    static_cast<u8*>(to)[at] = static_cast<u8>(ptx::cvt_e4m3x4(value, 0.0f, 0.0f, 0.0f));
  } else {
    static_cast<u16*>(to)[at] = static_cast<u16>(pack_pair<type>(value, 0.0f));
  }
}

}  // namespace mxjit
