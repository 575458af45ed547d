// The numbers of float scales: largest magnitude -> factor -> scale.
#pragma once

#include "quantize/pairs.cuh"

namespace mxjit {

/// What one scale serves.
enum class Span { block, row, tensor };

template <Format format>
inline constexpr float largest_number = format == Format::e4m3 ? 448.0f : 57344.0f;

/// What elements are multiplied by, from the bits of their largest magnitude: fp32(MAX / max(amax, 1e-12)),
/// the quotient taken in double. One fp32 division gives the same: a double has more than twice the digits of
/// a float and two, so that rounding to it first changes nothing, and no quotient here is subnormal.
template <Format format, Rounding rounding>
__device__ __forceinline__ float factor_of(u32 amax, float cap) {
  amax &= 0x7FFFFFFF;
  if (amax > 0x7F800000) return __uint_as_float(0x7FFFFFFF);
  constexpr double least = 1e-12;
  static_assert(static_cast<double>(static_cast<float>(least)) < least, "the largest float below");
  constexpr float of_least = static_cast<float>(static_cast<double>(largest_number<format>) / least);
  float value = __uint_as_float(amax);
  value = value < cap ? value : cap;
  const float factor = value > static_cast<float>(least) ? largest_number<format> / value : of_least;
  if (rounding == Rounding::pow2) return __uint_as_float(__float_as_uint(factor) & 0x7F800000);
  return factor;
}

/// What decodes elements that were multiplied by `factor`.
__device__ __forceinline__ float scale_of(float factor) {
  const bool is_number = (__float_as_uint(factor) & 0x7FFFFFFF) <= 0x7F800000;
  return is_number ? 1.0f / factor : __uint_as_float(0x7FFFFFFF);
}

template <Format format, class N>
__device__ __forceinline__ u32 scaled_bytes(typename N::Pair a, typename N::Pair b, float factor) {
  const Floats x = N::widen(a), y = N::widen(b);
  return pack4<format>(x.low * factor, x.high * factor, y.low * factor, y.high * factor);
}

}  // namespace mxjit
