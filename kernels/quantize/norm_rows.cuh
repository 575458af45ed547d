// RMSNorm of rows that a team of threads holds: eight elements of a row at a time.
#pragma once

#include "quantize/norm_values.cuh"
#include "quantize/panel.cuh"
#include "quantize/params.cuh"

namespace mxjit {

/// Eight elements as they are stored.
template <class Config>
using StoredUnit = typename Pairs<Config::stored>::Pair[4];

/// `left` of them, the others zero; `wide`: at a multiple of 16 bytes.
template <class Config>
__device__ __forceinline__ void load_stored(const void* base, i64 element, i64 left, bool wide,
                                            StoredUnit<Config>& to) {
  const u8* from = static_cast<const u8*>(base) + element * Pairs<Config::stored>::bytes;
  if (wide && left >= 8) {
    load_lane_row(from, to);
  } else {
    load_lane_row(from, left < 0 ? 0 : left < 8 ? static_cast<int>(left) : 8, to);
  }
}

template <class Config>
__device__ __forceinline__ double sum_of_squares(const StoredUnit<Config>& x) {
  double sum = 0;
#pragma unroll
  for (int w = 0; w < 4; ++w) {
    const Floats wide = Pairs<Config::stored>::widen(x[w]);
    const double low = wide.low, high = wide.high;
    sum += low * low;
    sum += high * high;
  }
  return sum;
}

/// The first `count` of x / root * weight in bf16, the others zero. `inverse`: of the root of the mean.
template <class Config>
__device__ __forceinline__ void normalize(const StoredUnit<Config>& x, const StoredUnit<Config>& weight,
                                          double inverse, int count, u32 (&to)[4]) {
  using S = Pairs<Config::stored>;
  const float factor = static_cast<float>(inverse);
  bool moderate = is_moderate(factor);
  NormMiddle middle;
  u32 largest = 0;
#pragma unroll
  for (int w = 0; w < 4; ++w) {
    const Floats a = S::widen(x[w]), b = S::widen(weight[w]);
    moderate = moderate && is_moderate(b.low) && is_moderate(b.high);
    const float low = __fmul_rn(a.low, __fmul_rn(b.low, factor));
    const float high = __fmul_rn(a.high, __fmul_rn(b.high, factor));
    to[w] = ptx::cvt_bf16x2_f32(low, high);
    largest = w == 0 ? to[0] : ptx::max_abs_bf16x2(largest, to[w]);
    middle.see(low, high);
  }
  middle.see_magnitudes(largest, bf16_infinity);
  if (!moderate || middle.any()) {
#pragma unroll
    for (int w = 0; w < 4; ++w) {
      const Floats a = S::widen(x[w]), b = S::widen(weight[w]);
      to[w] = nearest_bf16(a.low * inverse * b.low) | nearest_bf16(a.high * inverse * b.high) << 16;
    }
  }
#pragma unroll
  for (int w = 0; w < 4; ++w) to[w] &= 2 * w + 1 < count ? 0xFFFFFFFF : 2 * w < count ? 0xFFFF : 0;
}

}  // namespace mxjit
