// As kernels/ptx/convert.cuh.
#pragma once

#include "numbers.hpp"
#include "ptx/types.cuh"

namespace mxjit::ptx {

inline u32 cvt_e4m3x4(float a, float b, float c, float d) {
  using emulation::round_e4m3;
  return round_e4m3(a) | round_e4m3(b) << 8 | round_e4m3(c) << 16 | round_e4m3(d) << 24;
}
inline u32 cvt_e5m2x4(float a, float b, float c, float d) {
  using emulation::round_e5m2;
  return round_e5m2(a) | round_e5m2(b) << 8 | round_e5m2(c) << 16 | round_e5m2(d) << 24;
}

// Every FP8 number is an fp16 number; a NaN becomes the canonical one.
inline u32 cvt_f16x2_e4m3x2(u16 bytes) {
  return emulation::round_ieee(emulation::widen_e4m3(bytes & 0xFF), emulation::fp16) |
         emulation::round_ieee(emulation::widen_e4m3(bytes >> 8), emulation::fp16) << 16;
}
inline u32 cvt_f16x2_e5m2x2(u16 bytes) {
  return emulation::round_ieee(emulation::widen_e5m2(bytes & 0xFF), emulation::fp16) |
         emulation::round_ieee(emulation::widen_e5m2(bytes >> 8), emulation::fp16) << 16;
}

inline u32 cvt_bf16x2_f32(float low, float high) {
  return emulation::round_ieee(low, emulation::bf16) | emulation::round_ieee(high, emulation::bf16) << 16;
}
inline u32 cvt_f16x2_f32(float low, float high) {
  return emulation::round_ieee(low, emulation::fp16) | emulation::round_ieee(high, emulation::fp16) << 16;
}
inline float cvt_rz_f32_f64(double wide) {
  const float near = static_cast<float>(wide);
  const double back = static_cast<double>(near);
  // One step back where rounding went away from zero; from infinity, to the largest number.
  const bool away = wide < 0 ? back < wide : back > wide;
  return away ? __builtin_bit_cast(float, __builtin_bit_cast(u32, near) - 1) : near;
}
inline float cvt_f32_f16(u16 half) {
  return static_cast<float>(emulation::widen_ieee(half, emulation::fp16));
}

}  // namespace mxjit::ptx
