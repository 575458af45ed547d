// Rounding to small floating-point formats, as the conversion instructions round.
#pragma once

namespace mxjit::emulation {

struct FloatFormat {
  int mantissa_bits, exponent_bits, bias;
};

inline constexpr FloatFormat fp16{10, 5, 15}, bf16{7, 8, 127}, e4m3{3, 4, 7}, e5m2{2, 5, 15};

/// Magnitude bits of `value`, finite and not negative, rounded to nearest even. May run over the largest
/// finite pattern: into infinity's for IEEE formats.
inline unsigned round_magnitude(double value, const FloatFormat& f) {
  if (value == 0) return 0;
  int exponent = __builtin_ilogb(value);
  const int least = 1 - f.bias;
  if (exponent < least) exponent = least;
  // In units of the last place at this exponent: exact, then one rounding.
  const double units = __builtin_scalbn(value, f.mantissa_bits - exponent);
  const double whole = __builtin_rint(units);  // to nearest even
  const unsigned steps = static_cast<unsigned>(whole);
  // A carry out of the mantissa moves on to the next exponent by itself.
  return static_cast<unsigned>(exponent - least) * (1u << f.mantissa_bits) + steps;
}

inline double widen_magnitude(unsigned bits, const FloatFormat& f) {
  const unsigned mantissa = bits & ((1u << f.mantissa_bits) - 1), exponent = bits >> f.mantissa_bits;
  if (exponent == 0) return __builtin_scalbn(static_cast<double>(mantissa), 1 - f.bias - f.mantissa_bits);
  return __builtin_scalbn(static_cast<double>(mantissa + (1u << f.mantissa_bits)),
                          static_cast<int>(exponent) - f.bias - f.mantissa_bits);
}

/// fp16 and bf16.
inline double widen_ieee(unsigned bits, const FloatFormat& f) {
  const unsigned sign = bits >> (f.mantissa_bits + f.exponent_bits) & 1;
  const unsigned magnitude = bits & ((1u << (f.mantissa_bits + f.exponent_bits)) - 1);
  const unsigned infinity = ((1u << f.exponent_bits) - 1) << f.mantissa_bits;
  const double value = magnitude > infinity    ? __builtin_nan("")
                       : magnitude == infinity ? __builtin_inf()
                                               : widen_magnitude(magnitude, f);
  return sign ? -value : value;
}

inline unsigned round_ieee(double value, const FloatFormat& f) {
  const unsigned infinity = ((1u << f.exponent_bits) - 1) << f.mantissa_bits;
  if (__builtin_isnan(value)) return (1u << (f.mantissa_bits + f.exponent_bits)) - 1;  // the canonical one
  const unsigned sign = static_cast<unsigned>(__builtin_signbit(value) != 0)
                        << (f.mantissa_bits + f.exponent_bits);
  const double magnitude = __builtin_fabs(value);
  if (__builtin_isinf(magnitude)) return sign | infinity;
  const unsigned rounded = round_magnitude(magnitude, f);
  return sign | (rounded > infinity ? infinity : rounded);
}

/// cvt.rn.satfinite to FP8: `largest` is the pattern of the largest number.
inline unsigned round_fp8(float value, const FloatFormat& f, unsigned largest) {
  if (__builtin_isnan(value)) return 0x7F;
  const unsigned sign = __builtin_signbit(value) ? 0x80 : 0;
  const double magnitude = __builtin_fabs(static_cast<double>(value));
  // Cut before rounding, for what is far above the format.
  const double most = widen_magnitude(largest, f);
  const unsigned rounded = round_magnitude(magnitude < 2 * most ? magnitude : 2 * most, f);
  return sign | (rounded > largest ? largest : rounded);
}
inline unsigned round_e4m3(float value) { return round_fp8(value, e4m3, 0x7E); }
inline unsigned round_e5m2(float value) { return round_fp8(value, e5m2, 0x7B); }

inline double widen_e4m3(unsigned bits) {
  const unsigned magnitude = bits & 0x7F;
  const double value = magnitude == 0x7F ? __builtin_nan("") : widen_magnitude(magnitude, e4m3);
  return bits & 0x80 ? -value : value;
}
inline double widen_e5m2(unsigned bits) { return widen_ieee(bits & 0xFF, e5m2); }

}  // namespace mxjit::emulation
