// The numbers of MX quantization: largest magnitude -> scale code and factor -> FP8 bytes.
//
// A Factors holds the two powers of two that a pair is multiplied by, so that the same code scales two
// columns by two factors or by one.
#pragma once

#include "quantize/pairs.cuh"

namespace mxjit {

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

/// fp16 and fp32 scale in fp32, where every power of two that a code stands for exists.
template <Input input>
struct Numbers : Pairs<input> {
  using Factors = Floats;
  using typename Pairs<input>::Pair;

  template <Format format, Rounding rounding>
  static __device__ __forceinline__ Scales<Factors> scales(Pair amax) {
    const Floats wide = Pairs<input>::widen(amax);
    Scales<Factors> s;
    u32 code_low, code_high;
    scale_of_f32<input, format, rounding>(__float_as_uint(wide.low), code_low, s.factors.low);
    scale_of_f32<input, format, rounding>(__float_as_uint(wide.high), code_high, s.factors.high);
    s.codes = code_low | code_high << 16;
    return s;
  }

  static __device__ __forceinline__ Factors splat_low(Factors f) { return {f.low, f.low}; }
  static __device__ __forceinline__ Factors splat_high(Factors f) { return {f.high, f.high}; }

  static __device__ __forceinline__ Floats scaled(Pair x, Factors f) {
    const Floats wide = Pairs<input>::widen(x);
    return {wide.low * f.low, wide.high * f.high};
  }
};

/// bf16 stays packed: multiplying by a power of two is exact in bf16 wherever FP8 can tell.
template <>
struct Numbers<Input::bf16> : Pairs<Input::bf16> {
  using Factors = u32;

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
};

}  // namespace mxjit
