// The numbers of MX quantization: largest magnitude -> scale code and factor -> FP8 bytes.
//
// Everything works on pairs of elements. A Pair holds two elements of the input type, a Factors the two
// powers of two that they are multiplied by, so that the same code scales two columns by two factors or by
// one.
#pragma once

#include "ptx/arithmetic.cuh"
#include "ptx/convert.cuh"
#include "ptx/memory.cuh"
#include "ptx/types.cuh"

namespace mxjit {

enum class Input { bf16, fp16, fp32 };
enum class Format { e4m3, e5m2 };
enum class Rounding { rceil, floor, ceil, even };
enum class ScaleLayout { plain, blocked };

/// The code of a largest magnitude with exponent field E is max(0, E + carry - offset): the exponent of the
/// format's largest number leaves the data inside the format.
template <Format format>
inline constexpr int code_offset = format == Format::e4m3 ? 8 : 15;

/// What to add to the bits of an amax with `bits` bits of mantissa so that a round-up carries into the
/// exponent. rceil: mantissas above 1.75, the largest of both formats; even: those that the format would
/// round up.
template <Format format, Rounding rounding, int bits>
inline constexpr u32 round_up = rounding == Rounding::rceil   ? (1u << bits) / 4 - 1
                                : rounding == Rounding::ceil  ? (1u << bits) - 1
                                : rounding == Rounding::floor ? 0
                                : format == Format::e4m3      ? (1u << bits) / 16
                                                              : (1u << bits) / 8;

struct Floats {
  float low, high;
};

/// Codes of two blocks, in the low byte of each half, and the factors that divide by their scales.
template <class Factors>
struct Scales {
  u32 codes;
  Factors factors;
};

/// fp16 and fp32: the code and the factor of one fp32 amax.
template <Input input, Format format, Rounding rounding>
__device__ __forceinline__ void scale_of_f32(u32 amax, u32& code, float& factor) {
  amax &= 0x7FFFFFFF;
  const u32 rounded = amax + round_up<format, rounding, 23>;
  const bool poisoned = (rounding == Rounding::even ? rounded : amax) >= 0x7F800000;
  constexpr u32 offset = u32{code_offset<format>} << 23;
  u32 exponent = rounded > offset ? (rounded - offset) & 0x7F800000 : 0;
  // rceil is defined by the fp32 product amax / largest, which rounds down to 2^-127 for this one value.
  constexpr u32 exception = format == Format::e4m3 ? 0x04600001 : 0x07E00001;
  if (input == Input::fp32 && rounding == Rounding::rceil && amax == exception) exponent = 0;
  code = poisoned ? 255 : exponent >> 23;
  factor = __uint_as_float(poisoned ? 0x7FFFFFFF : 0x7F000000 - exponent);
}

template <Input input>
struct Numbers;

/// bf16 stays packed: multiplying by a power of two is exact in bf16 wherever FP8 can tell.
template <>
struct Numbers<Input::bf16> {
  using Pair = u32;
  using Factors = u32;
  static constexpr int bytes = 2;

  static __device__ __forceinline__ Pair max_abs(Pair a, Pair b) { return ptx::max_abs_bf16x2(a, b); }

  template <Format format, Rounding rounding>
  static __device__ __forceinline__ Scales<Factors> scales(Pair amax) {
    amax &= 0x7FFF7FFF;
    constexpr u32 up = round_up<format, rounding, 7>;
    constexpr u32 shift = (up - (u32{code_offset<format>} << 7)) & 0xFFFF;
    const u32 exponents = ptx::add_relu_s16x2(amax, shift * 0x10001) & 0x7F807F80;
    // Zero times a non-finite amax turns the factor, and so the block, into NaN. Its exponent field then
    // gives code 255.
    const u32 poison = rounding == Rounding::even ? ptx::min_u16x2(amax + up * 0x10001, 0x7FFF7FFF) : amax;
    const u32 factors = ptx::fma_bf16x2(poison, 0, 0x7F007F00 - exponents);
    const u32 codes = (0x01FE01FE - ((factors >> 7) & 0x00FF00FF)) & 0x00FF00FF;
    return {codes, factors};
  }

  static __device__ __forceinline__ Factors splat_low(Factors f) { return ptx::prmt(f, f, 0x1010); }
  static __device__ __forceinline__ Factors splat_high(Factors f) { return ptx::prmt(f, f, 0x3232); }

  static __device__ __forceinline__ Floats scaled(Pair x, Factors f) {
    const u32 product = ptx::mul_bf16x2(x, f);
    return {__uint_as_float(product << 16), __uint_as_float(product & 0xFFFF0000)};
  }

  // Pairs of two rows from two pairs of columns, and the exchange between lanes.
  static __device__ __forceinline__ Pair lows(Pair a, Pair b) { return ptx::prmt(a, b, 0x5410); }
  static __device__ __forceinline__ Pair highs(Pair a, Pair b) { return ptx::prmt(a, b, 0x7632); }
  static __device__ __forceinline__ Pair exchange(Pair a, u32 mask) { return ptx::shfl_xor(a, mask); }
};

/// fp16 and fp32 scale in fp32, where every power of two that a code stands for exists.
template <Input input, class PairOf>
struct WideNumbers {
  using Pair = PairOf;
  using Factors = Floats;

  template <Format format, Rounding rounding>
  static __device__ __forceinline__ Scales<Factors> scales_of(u32 low, u32 high) {
    Scales<Factors> s;
    u32 code_low, code_high;
    scale_of_f32<input, format, rounding>(low, code_low, s.factors.low);
    scale_of_f32<input, format, rounding>(high, code_high, s.factors.high);
    s.codes = code_low | code_high << 16;
    return s;
  }

  static __device__ __forceinline__ Factors splat_low(Factors f) { return {f.low, f.low}; }
  static __device__ __forceinline__ Factors splat_high(Factors f) { return {f.high, f.high}; }
};

template <>
struct Numbers<Input::fp16> : WideNumbers<Input::fp16, u32> {
  static constexpr int bytes = 2;

  static __device__ __forceinline__ Pair max_abs(Pair a, Pair b) { return ptx::max_abs_f16x2(a, b); }
  static __device__ __forceinline__ Floats widen(Pair x) {
    return {ptx::cvt_f32_f16(static_cast<u16>(x)), ptx::cvt_f32_f16(static_cast<u16>(x >> 16))};
  }

  template <Format format, Rounding rounding>
  static __device__ __forceinline__ Scales<Factors> scales(Pair amax) {
    const Floats wide = widen(amax);
    return scales_of<format, rounding>(__float_as_uint(wide.low), __float_as_uint(wide.high));
  }

  static __device__ __forceinline__ Floats scaled(Pair x, Factors f) {
    const Floats wide = widen(x);
    return {wide.low * f.low, wide.high * f.high};
  }

  static __device__ __forceinline__ Pair lows(Pair a, Pair b) { return ptx::prmt(a, b, 0x5410); }
  static __device__ __forceinline__ Pair highs(Pair a, Pair b) { return ptx::prmt(a, b, 0x7632); }
  static __device__ __forceinline__ Pair exchange(Pair a, u32 mask) { return ptx::shfl_xor(a, mask); }
};

template <>
struct Numbers<Input::fp32> : WideNumbers<Input::fp32, Vector2> {
  static constexpr int bytes = 4;

  static __device__ __forceinline__ Pair max_abs(Pair a, Pair b) {
    return {ptx::max_abs_f32(a.x, b.x), ptx::max_abs_f32(a.y, b.y)};
  }

  template <Format format, Rounding rounding>
  static __device__ __forceinline__ Scales<Factors> scales(Pair amax) {
    return scales_of<format, rounding>(amax.x, amax.y);
  }

  static __device__ __forceinline__ Floats scaled(Pair x, Factors f) {
    return {__uint_as_float(x.x) * f.low, __uint_as_float(x.y) * f.high};
  }

  static __device__ __forceinline__ Pair lows(Pair a, Pair b) { return {a.x, b.x}; }
  static __device__ __forceinline__ Pair highs(Pair a, Pair b) { return {a.y, b.y}; }
  static __device__ __forceinline__ Pair exchange(Pair a, u32 mask) {
    return {ptx::shfl_xor(a.x, mask), ptx::shfl_xor(a.y, mask)};
  }
};

/// FP8 bytes of four elements, the first in the low byte.
template <Format format>
__device__ __forceinline__ u32 pack4(float a, float b, float c, float d) {
  return format == Format::e4m3 ? ptx::cvt_e4m3x4(a, b, c, d) : ptx::cvt_e5m2x4(a, b, c, d);
}

}  // namespace mxjit
