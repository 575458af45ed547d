// From fp32 arithmetic to the bf16 number nearest to the exact value. fp32 is wrong by some units of its last
// place, which the rounding hides - unless the value lies near the middle between two bf16 numbers, or fp32
// does not reach it. Such elements, one in some thousands, are found by their bits and computed in double.
#pragma once

#include "quantize/pairs.cuh"
#include "quantize/panel.cuh"

namespace mxjit {

inline constexpr u32 bf16_infinity = 0x7F80;

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
  /// One that was seen is near.
  __device__ __forceinline__ bool any() const { return half_reaches(~nearest, 0xFFFF - last); }

  /// A half of the pair has `least` or more.
  static __device__ __forceinline__ bool half_reaches(u32 pair, u32 least) {
    return pair >= least << 16 || pair << 16 >= least << 16;
  }
};

/// The bits of the bf16 number nearest to `value`, rounded once: what the first step cuts off stays as a bit
/// that the second one cannot take for a middle.
__device__ __forceinline__ u32 nearest_bf16(double value) {
  const float cut = ptx::cvt_rz_f32_f64(value);
  const u32 rest = static_cast<double>(cut) == value ? 0 : 1;
  return ptx::cvt_bf16x2_f32(__uint_as_float(__float_as_uint(cut) | rest), 0.0f) & 0xFFFF;
}

/// Computes `count` pieces of eight values, bits of masks standing for them: those in `whole` lie inside x in
/// wide pieces, those in `some` have an element; the others' operands are zero, and so are their values. A
/// Source knows how: load, of a whole piece; load_some, of any; fast, true where a value may not be the
/// nearest; exact. A piece that is not whole takes the exact way: both are rare, and must be short.
template <int count, class Source>
__device__ __forceinline__ void compute_pieces(const Source& source, u32 whole, u32 some,
                                               u32 (&x)[count][4]) {
  constexpr int ahead = Source::ahead < count ? Source::ahead : count;  // on their way
  u32 inexact = 0;
  typename Source::Operands operands[ahead];
  const auto fetch = [&](int i) {
    operands[i % ahead] = {};
    if ((whole >> i & 1) != 0) source.load(i, operands[i % ahead]);
  };
#pragma unroll
  for (int i = 0; i < ahead; ++i) fetch(i);
#pragma unroll
  for (int i = 0; i < count; ++i) {
    if (source.fast(i, operands[i % ahead], x[i])) inexact |= 1u << i;
    if (i + ahead < count) fetch(i + ahead);
  }
  inexact = (inexact | ~whole) & some;
#pragma unroll 1
  for (; inexact != 0; inexact &= inexact - 1) {
    const int piece = __ffs(static_cast<int>(inexact)) - 1;
    typename Source::Operands again;
    source.load_some(piece, again);
    u32 exact[4];
    source.exact(piece, again, exact);
#pragma unroll
    for (int i = 0; i < count; ++i)
#pragma unroll
      for (int w = 0; w < 4; ++w)
        if (i == piece) x[i][w] = exact[w];
  }
}

/// Bits of the lane's rows for compute_pieces.
template <class Config>
struct RowMasks {
  u32 whole, some;
  __device__ __forceinline__ RowMasks(const QuantizeParams& p, const Lane<Config>& lane) {
    some = lane.columns > 0 ? (1u << lane.rows) - 1 : 0;
    whole = (p.wide & wide_x) != 0 && lane.columns == lane_columns ? some : 0;
  }
};

}  // namespace mxjit
