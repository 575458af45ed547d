// SwiGLU before a quantization, right to the bit: what double arithmetic gives, rounded once to bf16.
//
// fp32 is fast and wrong by some units of its last place, which the rounding hides - unless the value lies
// near the middle between two bf16 numbers, or is so large or small that fp32 does not do. Such elements, one
// in some thousands, are found by their bits and computed again in double.
#pragma once

#include "quantize/pairs.cuh"
#include "quantize/panel.cuh"
#include "quantize/params.cuh"

namespace mxjit {

/// What fp32 may be wrong by, in units of the last place: 2^-22 for 2^x, 2^-23 for the reciprocal, 0.7 *
/// 2^-24 for the exponent, half a unit for each of four roundings, and one below the normal numbers.
inline constexpr u32 swiglu_error = 12;
/// The low half of the bits of fp32 numbers that are near a middle, counted from the first such.
inline constexpr u32 first_near_middle = 0x8000 - swiglu_error, near_middle = 2 * swiglu_error;

template <bool limited>
__device__ __forceinline__ float fast_swiglu(const SwigluParams& p, float gate, float up) {
  if constexpr (limited) {
    gate = ptx::min_nan_f32(gate, p.fast_limit);
    up = __fadd_rn(ptx::max_nan_f32(ptx::min_nan_f32(up, p.fast_limit), -p.fast_limit), 1.0f);
  }
  // 2^whole * 2^part; the sum leaves the whole part in the low bits.
  constexpr float to_whole = 12582912.0f;
  const float whole = __fmaf_rn(gate, p.exponent, to_whole);
  const float part = __fmaf_rn(gate, p.exponent_rest, __fmaf_rn(gate, p.exponent, to_whole - whole));
  const u32 power = __float_as_uint(ptx::ex2_approx(part)) + (__float_as_uint(whole) << 23);
  const float denominator = __fadd_rn(1.0f, __uint_as_float(power));
  // The product first: it may overflow, which shows, but loses nothing by underflow that counts.
  return __fmul_rn(__fmul_rn(gate, up), ptx::rcp_approx(denominator));
}

/// `fast` may not be the number nearest to the exact value.
__device__ __forceinline__ bool needs_exact(const SwigluParams& p, float gate, float fast) {
  const u32 bits = __float_as_uint(fast);
  return (__float_as_uint(gate) & 0x7FFFFFFF) >= p.exact_from || (bits & 0x7F800000) == 0x7F800000 ||
         ((bits - first_near_middle) & 0xFFFF) <= near_middle;
}

/// The bits of the bf16 number nearest to the value in double.
template <bool limited>
__device__ __forceinline__ u32 exact_swiglu(const SwigluParams& p, double gate, double up) {
  if constexpr (limited) {
    // Comparisons that are false for NaN, so that it stays.
    gate = gate > p.limit ? p.limit : gate;
    up = up > p.limit ? p.limit : up;
    up = (up < -p.limit ? -p.limit : up) + 1.0;
  }
  const double value = gate / (1.0 + exp(-p.alpha * gate)) * up;
  // Rounded once: what the first step cuts off stays as a bit that the second one cannot take for a middle.
  const float cut = ptx::cvt_rz_f32_f64(value);
  const u32 rest = static_cast<double>(cut) == value ? 0 : 1;
  return ptx::cvt_bf16x2_f32(__uint_as_float(__float_as_uint(cut) | rest), 0.0f) & 0xFFFF;
}

/// Eight columns of gate and up, as stored.
template <class S>
struct SwigluOperands {
  typename S::Pair gate[4], up[4];
};

/// A half of the pair has a magnitude of `least` bits or more.
__device__ __forceinline__ bool half_reaches(u32 pair, u32 least) {
  return pair >= least << 16 || pair << 16 >= least << 16;
}

/// Eight values in fp32, rounded. True where one of them may not be the nearest.
template <bool limited, class S>
__device__ __forceinline__ bool fast_swiglu_row(const SwigluParams& p, const SwigluOperands<S>& x,
                                                u32 (&to)[4]) {
  typename S::Pair largest_gate = x.gate[0];
  u32 largest = 0, nearest = 0xFFFFFFFF;
#pragma unroll
  for (int w = 0; w < 4; ++w) {
    const Floats gate = S::widen(x.gate[w]), up = S::widen(x.up[w]);
    const float low = fast_swiglu<limited>(p, gate.low, up.low);
    const float high = fast_swiglu<limited>(p, gate.high, up.high);
    to[w] = ptx::cvt_bf16x2_f32(low, high);
    if (w > 0) largest_gate = S::max_abs(largest_gate, x.gate[w]);
    largest = w == 0 ? to[0] : ptx::max_abs_bf16x2(largest, to[w]);
    const u32 below = ptx::prmt(__float_as_uint(low), __float_as_uint(high), 0x5410);
    nearest = ptx::add_min_u16x2(below, (0x10000 - first_near_middle) * 0x10001, nearest);
  }
  constexpr u32 infinity = 0x7F80;
  const bool near = half_reaches(~nearest, 0xFFFF - near_middle);
  if constexpr (S::input == Input::bf16) {
    // Moved up so that infinity stands for exact_from; no half carries.
    const u32 up = (infinity - (p.exact_from >> 16)) * 0x10001;
    const u32 both = ptx::add_max_u16x2(largest_gate & 0x7FFF7FFF, up, largest & 0x7FFF7FFF);
    return near || half_reaches(both, infinity);
  } else {
    return near || half_reaches(largest & 0x7FFF7FFF, infinity) ||
           largest_of<S>(largest_gate) >= p.exact_from;
  }
}

/// The same eight values, every one the nearest. For what is rare.
template <bool limited, class S>
__device__ __forceinline__ void exact_swiglu_row(const SwigluParams& p, const SwigluOperands<S>& x,
                                                 u32 (&to)[4]) {
  u32 inexact = 0;
#pragma unroll
  for (int w = 0; w < 4; ++w) {
    const Floats gate = S::widen(x.gate[w]), up = S::widen(x.up[w]);
    const float low = fast_swiglu<limited>(p, gate.low, up.low);
    const float high = fast_swiglu<limited>(p, gate.high, up.high);
    to[w] = ptx::cvt_bf16x2_f32(low, high);
    inexact |= (needs_exact(p, gate.low, low) ? 1u : 0u) << 2 * w;
    inexact |= (needs_exact(p, gate.high, high) ? 2u : 0u) << 2 * w;
  }
#pragma unroll 1
  for (; inexact != 0; inexact &= inexact - 1) {
    const int element = __ffs(static_cast<int>(inexact)) - 1, word = element / 2;
    typename S::Pair gate_pair = x.gate[0], up_pair = x.up[0];
#pragma unroll
    for (int w = 1; w < 4; ++w) {
      if (word == w) gate_pair = x.gate[w], up_pair = x.up[w];
    }
    const Floats gates = S::widen(gate_pair), ups = S::widen(up_pair);
    const bool odd = element % 2 != 0;
    const u32 value = exact_swiglu<limited>(p, odd ? gates.high : gates.low, odd ? ups.high : ups.low);
#pragma unroll
    for (int w = 0; w < 4; ++w) {
      if (word == w) to[w] = odd ? ptx::prmt(to[w], value, 0x5410) : ptx::prmt(to[w], value, 0x3254);
    }
  }
}

/// Pairs of gates and ups that alternate, apart.
template <class S>
__device__ __forceinline__ void part(const typename S::Pair (&a)[4], const typename S::Pair (&b)[4],
                                     SwigluOperands<S>& x) {
#pragma unroll
  for (int w = 0; w < 2; ++w) {
    x.gate[w] = S::lows(a[2 * w], a[2 * w + 1]), x.gate[w + 2] = S::lows(b[2 * w], b[2 * w + 1]);
    x.up[w] = S::highs(a[2 * w], a[2 * w + 1]), x.up[w + 2] = S::highs(b[2 * w], b[2 * w + 1]);
  }
}

/// What eight columns are made of, `from` being where the first gate lies, in wide pieces.
template <Pre pre, class S>
__device__ __forceinline__ void load_swiglu(const SwigluParams& p, const u8* from, SwigluOperands<S>& x) {
  if constexpr (pre == Pre::swiglu_interleaved) {
    typename S::Pair a[4], b[4];
    load_lane_row(from, a);
    load_lane_row(from + lane_columns * S::bytes, b);
    part<S>(a, b, x);
  } else {
    load_lane_row(from, x.gate);
    load_lane_row(from + p.up * S::bytes, x.up);
  }
}

/// Likewise of the first `count` columns at any address, the others zero.
template <Pre pre, class S>
__device__ __forceinline__ void load_swiglu(const SwigluParams& p, const u8* from, int count,
                                            SwigluOperands<S>& x) {
  if constexpr (pre == Pre::swiglu_interleaved) {
    typename S::Pair a[4], b[4];
    load_lane_row(from, 2 * count, a);
    load_lane_row(from + lane_columns * S::bytes, 2 * count - lane_columns, b);
    part<S>(a, b, x);
  } else {
    load_lane_row(from, count, x.gate);
    load_lane_row(from + p.up * S::bytes, count, x.up);
  }
}

/// `count` pieces of eight values after SwiGLU, bits of masks standing for them: those in `whole` lie inside
/// x in wide pieces, those in `some` have an element. from(i) is where the first gate of a piece lies,
/// columns(i) how many of its columns are inside. Others are zero; two zeros make a zero. A piece that is not
/// whole takes the way of what fp32 is not right for: both are rare, and must be short.
template <class Config, int count, class From, class Columns>
__device__ __forceinline__ void load_swiglu_pieces(const SwigluParams& p, u32 whole, u32 some,
                                                   const From& from, const Columns& columns,
                                                   u32 (&x)[count][4]) {
  using S = Pairs<Config::stored>;
  constexpr int most = S::bytes == 2 ? 4 : 2, ahead = most < count ? most : count;  // on their way
  u32 inexact = 0;
  SwigluOperands<S> operands[ahead];
  const auto fetch = [&](int i) {
    operands[i % ahead] = {};
    if ((whole >> i & 1) != 0) load_swiglu<Config::pre>(p, from(i), operands[i % ahead]);
  };
#pragma unroll
  for (int i = 0; i < ahead; ++i) fetch(i);
#pragma unroll
  for (int i = 0; i < count; ++i) {
    if (fast_swiglu_row<Config::limited>(p, operands[i % ahead], x[i])) inexact |= 1u << i;
    if (i + ahead < count) fetch(i + ahead);
  }
  inexact = (inexact | ~whole) & some;
#pragma unroll 1
  for (; inexact != 0; inexact &= inexact - 1) {
    const int piece = __ffs(static_cast<int>(inexact)) - 1;
    SwigluOperands<S> again;
    load_swiglu<Config::pre>(p, from(piece), columns(piece), again);
    u32 exact[4];
    exact_swiglu_row<Config::limited>(p, again, exact);
#pragma unroll
    for (int i = 0; i < count; ++i)
#pragma unroll
      for (int w = 0; w < 4; ++w)
        if (i == piece) x[i][w] = exact[w];
  }
}

/// Elements of x between the gates of neighbouring columns.
template <class Config>
inline constexpr int gate_step = Config::pre == Pre::swiglu_interleaved ? 2 : 1;

/// As load_panel, of the values after SwiGLU.
template <class Config>
__device__ __forceinline__ void load_swiglu_panel(const QuantizeParams& p, const Lane<Config>& lane,
                                                  u32 (&x)[Config::rows_per_lane][4]) {
  constexpr int bytes = Pairs<Config::stored>::bytes;
  const u8* const first =
      static_cast<const u8*>(p.x) + (lane.row * p.ld_x + lane.column * gate_step<Config>)*bytes;
  const i64 pitch = p.ld_x * bytes;
  const u32 some = lane.columns > 0 ? (1u << lane.rows) - 1 : 0;
  const bool wide = (p.wide & wide_x) != 0 && lane.columns == lane_columns;
  load_swiglu_pieces<Config>(
      p.swiglu, wide ? some : 0, some, [&](int r) { return first + r * pitch; },
      [&](int) { return lane.columns; }, x);
}

}  // namespace mxjit
