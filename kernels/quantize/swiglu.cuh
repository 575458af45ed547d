// SwiGLU before a quantization, right to the bit: what double arithmetic gives, rounded once to bf16.
#pragma once

#include "quantize/nearest.cuh"
#include "quantize/pairs.cuh"
#include "quantize/panel.cuh"
#include "quantize/params.cuh"
#include "quantize/pieces.cuh"

namespace mxjit {

/// What fp32 may be wrong by, in units of 2^-24 of the value: 4 for 2^x, 1 for the square of the rest that is
/// left out, 2 for the reciprocal and 1 for each of at most six roundings. Less below the normal numbers.
using SwigluMiddle = NearMiddle<13>;

/// The exponent's first part has 16 bits, so that its product with a bf16 gate is exact, and 2^rest is
/// 1 + rest * ln(2).
template <bool limited, class S>
__device__ __forceinline__ float fast_swiglu(const SwigluParams& p, float gate, float up) {
  if constexpr (limited) {
    gate = ptx::min_nan_f32(gate, p.fast_limit);
    up = __fadd_rn(ptx::max_nan_f32(ptx::min_nan_f32(up, p.fast_limit), -p.fast_limit), 1.0f);
  }
  constexpr float ln_2 = 0.693147181f;
  const float x = __fmul_rn(gate, p.exponent);
  float rest_power = __fmaf_rn(gate, p.exponent_rest, 1.0f);
  if constexpr (limited || S::input != Input::bf16)
    rest_power = __fmaf_rn(__fmaf_rn(gate, p.exponent, -x), ln_2, rest_power);
  const float denominator = __fmaf_rn(ptx::ex2_approx(x), rest_power, 1.0f);
  return __fmul_rn(__fmul_rn(gate, ptx::rcp_approx(denominator)), up);
}

/// fp32 may not be right for this gate. A quotient below the normal numbers is half a gate so small, which
/// fp32 holds if the gate has few bits.
template <class S>
__device__ __forceinline__ bool gate_needs_exact(const SwigluParams& p, float gate) {
  const u32 bits = __float_as_uint(gate) & 0x7FFFFFFF;
  return bits >= p.exact_from || (S::input == Input::fp32 && bits - 1 < (2u << 23) - 1);
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
  typename S::Pair largest = x.gate[0];
  bool inexact = false;
  SwigluMiddle middle;
#pragma unroll
  for (int w = 0; w < 4; ++w) {
    const Floats gate = S::widen(x.gate[w]), up = S::widen(x.up[w]);
    const float low = fast_swiglu<limited, S>(p, gate.low, up.low);
    const float high = fast_swiglu<limited, S>(p, gate.high, up.high);
    to[w] = ptx::cvt_bf16x2_f32(low, high);
    middle.see(low, high);
    if constexpr (S::input == Input::bf16) {
      if (w > 0) largest = S::max_abs(largest, x.gate[w]);
    } else {
      inexact = inexact || gate_needs_exact<S>(p, gate.low) || gate_needs_exact<S>(p, gate.high);
    }
  }
  if constexpr (S::input == Input::bf16) middle.see_magnitudes(largest, p.exact_from >> 16);
  return inexact || middle.any();
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

/// Elements of x between the gates of neighbouring columns.
template <class Config>
inline constexpr int gate_step = Config::pre == Pre::swiglu_interleaved ? 2 : 1;

/// Source of pieces: from(i) is where the first gate of one lies, columns(i) as Source says.
template <class Config, class From, class Columns>
struct SwigluSource {
  using S = Pairs<Config::stored>;
  using Operands = SwigluOperands<S>;
  static constexpr int units = S::bytes;  // a half of them gates, or of each the first, where they alternate
  static constexpr int ahead = S::bytes == 2 ? 4 : 2;

  const SwigluParams& p;
  From from;
  Columns columns;

  __device__ __forceinline__ i64 offset(int u) const {
    const i64 second = Config::pre == Pre::swiglu_interleaved ? lane_columns : p.up;
    return u / (units / 2) * second * S::bytes + u % (units / 2) * 16;
  }
  static __device__ __forceinline__ void unpack(const Vector4 (&from)[units], Operands& to) {
    if constexpr (Config::pre == Pre::swiglu_interleaved) {
      typename S::Pair a[4], b[4];
      unpack_units(from, a);
      unpack_units(from + units / 2, b);
      part<S>(a, b, to);
    } else {
      unpack_units(from, to.gate);
      unpack_units(from + units / 2, to.up);
    }
  }
  __device__ __forceinline__ bool fast(int, const Operands& x, u32 (&to)[4]) const {
    return fast_swiglu_row<Config::limited>(p, x, to);
  }
  __device__ __forceinline__ u32 doubtful(int, const Operands& x) const {
    u32 elements = 0;
#pragma unroll
    for (int w = 0; w < 4; ++w) {
      const Floats gate = S::widen(x.gate[w]), up = S::widen(x.up[w]);
      if (is_doubtful(gate.low, up.low)) elements |= 1u << 2 * w;
      if (is_doubtful(gate.high, up.high)) elements |= 2u << 2 * w;
    }
    return elements;
  }
  static constexpr bool finds_elements = true;
  struct Element {
    float gate, up;
  };
  __device__ __forceinline__ Element element(const Operands& x, int e) const {
    const Floats gate = S::widen(pick(x.gate, e / 2)), up = S::widen(pick(x.up, e / 2));
    return e % 2 == 0 ? Element{gate.low, up.low} : Element{gate.high, up.high};
  }
  __device__ __forceinline__ Element element(int i, int e) const {
    const u8* const at = from(i) + e * gate_step<Config> * S::bytes;
    const i64 to_up = Config::pre == Pre::swiglu_interleaved ? 1 : p.up;
    return {load_element<S>(at), load_element<S>(at + to_up * S::bytes)};
  }
  __device__ __forceinline__ u32 nearest(int, int, const Element& x) const {
    return exact_swiglu<Config::limited>(p, x.gate, x.up);
  }

 private:
  __device__ __forceinline__ bool is_doubtful(float gate, float up) const {
    const float fast = fast_swiglu<Config::limited, S>(p, gate, up);
    return gate_needs_exact<S>(p, gate) || SwigluMiddle::is(fast);
  }
};

template <class Config, class From, class Columns>
__device__ __forceinline__ SwigluSource<Config, From, Columns> swiglu_source(const SwigluParams& p, From from,
                                                                             Columns columns) {
  return {p, from, columns};
}

/// As load_panel, of the values after SwiGLU.
template <class Config, class Ring>
__device__ __forceinline__ void load_swiglu_panel(const QuantizeParams& p, const Lane<Config>& lane,
                                                  Ring& ring, u32 (&x)[Config::rows_per_lane][4]) {
  constexpr int bytes = Pairs<Config::stored>::bytes;
  const u8* const first =
      static_cast<const u8*>(p.x) + (lane.row * p.ld_x + lane.column * gate_step<Config>)*bytes;
  const i64 pitch = p.ld_x * bytes;
  const RowMasks<Config> masks(p, lane);
  const auto source = swiglu_source<Config>(
      p.swiglu, [=](int r) { return first + r * pitch; }, [&](int) { return lane.columns; });
  PiecesInRing<decltype(source), Ring> pieces{ring, first, pitch};
  start_pieces<Config::rows_per_lane>(source, pieces, masks.whole);
  compute_pieces(source, pieces, masks.whole, masks.some, x);
}

}  // namespace mxjit
