// From fp32 arithmetic to the bf16 number nearest to the exact value. fp32 is wrong by some units of its last
// place, which the rounding hides - unless the value lies near the middle between two bf16 numbers, or fp32
// does not reach it. Such elements, one in some thousands, are found by their bits and computed in double.
#pragma once

#include "quantize/pairs.cuh"

namespace mxjit {

/// Of fp32 numbers that may be wrong by `error` units of the last place.
template <u32 error>
struct NearMiddle {
  // The low half of the bits of those near a middle, counted from the first such.
  static constexpr u32 first = 0x8000 - error, last = 2 * error;

  static __device__ __forceinline__ bool is(float value) {
    return ((__float_as_uint(value) - first) & 0xFFFF) <= last;
  }

  u32 nearest = 0xFFFFFFFF;
  __device__ __forceinline__ void see(float a, float b) {
    const u32 low_halves = ptx::prmt(__float_as_uint(a), __float_as_uint(b), 0x5410);
    nearest = ptx::add_min_u16x2(low_halves, (0x10000 - first) * 0x10001, nearest);
  }
  /// Counts as near where the magnitude of a half of `pair`, of bf16, reaches `least`, less than 2^15.
  __device__ __forceinline__ void see_magnitudes(u32 pair, u32 least) {
    const u32 below = 0xFFFF - least;
    const u32 clamped = ptx::add_max_u16x2(~pair | 0x80008000, 0, below * 0x10001);
    nearest = ptx::add_min_u16x2(clamped, ((last - below) & 0xFFFF) * 0x10001, nearest);
  }
  /// One that was seen is near.
  __device__ __forceinline__ bool any() const {
    return ptx::add_min_u16x2(ptx::prmt(nearest, nearest, 0x1032), 0, nearest) < (last + 1) << 16;
  }
};

/// The bits of the bf16 number nearest to `value`, rounded once: what the first step cuts off stays as a bit
/// that the second one cannot take for a middle.
__device__ __forceinline__ u32 nearest_bf16(double value) {
  const float cut = ptx::cvt_rz_f32_f64(value);
  const u32 rest = static_cast<double>(cut) == value ? 0 : 1;
  return ptx::cvt_bf16x2_f32(__uint_as_float(__float_as_uint(cut) | rest), 0.0f) & 0xFFFF;
}

}  // namespace mxjit
