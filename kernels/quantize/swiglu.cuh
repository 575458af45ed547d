// SwiGLU before a quantization, right to the bit: what double arithmetic gives, rounded once to bf16.
#pragma once

#include "quantize/nearest.cuh"
#include "quantize/pairs.cuh"
#include "quantize/panel.cuh"
#include "quantize/params.cuh"

namespace mxjit {

/// What fp32 may be wrong by, in units of the last place: 2^-22 for 2^x, 2^-23 for the reciprocal, 0.7 *
/// 2^-24 for the exponent, half a unit for each of four roundings, and one below the normal numbers.
using SwigluMiddle = NearMiddle<12>;

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
  return (__float_as_uint(gate) & 0x7FFFFFFF) >= p.exact_from ||
         (__float_as_uint(fast) & 0x7F800000) == 0x7F800000 || SwigluMiddle::is(fast);
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
  return nearest_bf16(gate / (1.0 + exp(-p.alpha * gate)) * up);
}

/// Eight columns of gate and up, as stored.
template <class S>
struct SwigluOperands {
  typename S::Pair gate[4], up[4];
};

/// Eight values in fp32, rounded. True where one of them may not be the nearest.
template <bool limited, class S>
__device__ __forceinline__ bool fast_swiglu_row(const SwigluParams& p, const SwigluOperands<S>& x,
                                                u32 (&to)[4]) {
  typename S::Pair largest_gate = x.gate[0];
  u32 largest = 0;
  SwigluMiddle middle;
#pragma unroll
  for (int w = 0; w < 4; ++w) {
    const Floats gate = S::widen(x.gate[w]), up = S::widen(x.up[w]);
    const float low = fast_swiglu<limited>(p, gate.low, up.low);
    const float high = fast_swiglu<limited>(p, gate.high, up.high);
    to[w] = ptx::cvt_bf16x2_f32(low, high);
    if (w > 0) largest_gate = S::max_abs(largest_gate, x.gate[w]);
    largest = w == 0 ? to[0] : ptx::max_abs_bf16x2(largest, to[w]);
    middle.see(low, high);
  }
  if constexpr (S::input == Input::bf16) {
    // Moved up so that infinity stands for exact_from; no half carries.
    const u32 up = (bf16_infinity - (p.exact_from >> 16)) * 0x10001;
    const u32 both = ptx::add_max_u16x2(largest_gate & 0x7FFF7FFF, up, largest & 0x7FFF7FFF);
    return middle.any() || SwigluMiddle::half_reaches(both, bf16_infinity);
  } else {
    return middle.any() || SwigluMiddle::half_reaches(largest & 0x7FFF7FFF, bf16_infinity) ||
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

/// Elements of x between the gates of neighbouring columns.
template <class Config>
inline constexpr int gate_step = Config::pre == Pre::swiglu_interleaved ? 2 : 1;

/// For compute_pieces. from(i) is where the first gate of a piece lies, columns(i) how many of its columns
/// are inside x.
template <class Config, class From, class Columns>
struct SwigluSource {
  using S = Pairs<Config::stored>;
  using Operands = SwigluOperands<S>;
  static constexpr int ahead = S::bytes == 2 ? 4 : 2;

  const SwigluParams& p;
  const From& from;
  const Columns& columns;

  __device__ __forceinline__ void load(int i, Operands& to) const {
    load_swiglu<Config::pre>(p, from(i), to);
  }
  __device__ __forceinline__ void load_some(int i, Operands& to) const {
    load_swiglu<Config::pre>(p, from(i), columns(i), to);
  }
  __device__ __forceinline__ bool fast(int, const Operands& x, u32 (&to)[4]) const {
    return fast_swiglu_row<Config::limited>(p, x, to);
  }
  __device__ __forceinline__ void exact(int, const Operands& x, u32 (&to)[4]) const {
    exact_swiglu_row<Config::limited>(p, x, to);
  }
};

template <class Config, int count, class From, class Columns>
__device__ __forceinline__ void load_swiglu_pieces(const SwigluParams& p, u32 whole, u32 some,
                                                   const From& from, const Columns& columns,
                                                   u32 (&x)[count][4]) {
  compute_pieces(SwigluSource<Config, From, Columns>{p, from, columns}, whole, some, x);
}

/// As load_panel, of the values after SwiGLU.
template <class Config>
__device__ __forceinline__ void load_swiglu_panel(const QuantizeParams& p, const Lane<Config>& lane,
                                                  u32 (&x)[Config::rows_per_lane][4]) {
  constexpr int bytes = Pairs<Config::stored>::bytes;
  const u8* const first =
      static_cast<const u8*>(p.x) + (lane.row * p.ld_x + lane.column * gate_step<Config>)*bytes;
  const i64 pitch = p.ld_x * bytes;
  const RowMasks<Config> masks(p, lane);
  load_swiglu_pieces<Config>(
      p.swiglu, masks.whole, masks.some, [&](int r) { return first + r * pitch; },
      [&](int) { return lane.columns; }, x);
}

}  // namespace mxjit
