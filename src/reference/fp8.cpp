#include "reference/fp8.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace mxjit::reference {
namespace {

float decode_fp8_code(const Fp8Format& format, bool has_infinity, std::uint8_t code) {
  const int exponent_mask = 0x7F >> format.mantissa_bits;
  const int exponent = code >> format.mantissa_bits & exponent_mask;
  const int mantissa = code & ((1 << format.mantissa_bits) - 1);
  const float sign = (code & 0x80) != 0 ? -1.0F : 1.0F;
  if (has_infinity && exponent == exponent_mask) {
    return mantissa == 0 ? sign * std::numeric_limits<float>::infinity()
                         : std::numeric_limits<float>::quiet_NaN();
  }
  if (!has_infinity && (code & 0x7F) == 0x7F) return std::numeric_limits<float>::quiet_NaN();
  const int leading = exponent == 0 ? 0 : 1 << format.mantissa_bits;
  const int power = (exponent == 0 ? 1 : exponent) - format.bias - format.mantissa_bits;
  return sign * std::ldexp(static_cast<float>(leading + mantissa), power);
}

std::array<float, 256> decode_table(const Fp8Format& format, bool has_infinity) {
  std::array<float, 256> table{};
  for (unsigned code = 0; code < 256; ++code) {
    table.at(code) = decode_fp8_code(format, has_infinity, static_cast<std::uint8_t>(code));
  }
  return table;
}

// Rounds a finite double to a binary format with `mantissa_bits` and smallest normal exponent `lowest`.
double round_to(double value, int mantissa_bits, int lowest) {
  if (value == 0.0) return value;
  const int exponent = std::max(std::ilogb(value), lowest);
  const int last_place = exponent - mantissa_bits;
  return std::ldexp(std::nearbyint(std::ldexp(value, -last_place)), last_place);
}

}  // namespace

std::uint8_t encode_fp8(const Fp8Format& format, float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
  const auto sign = static_cast<std::uint8_t>(bits >> 24 & 0x80U);
  if (magnitude > 0x7F800000U) return fp8_nan;
  if (magnitude >= std::bit_cast<std::uint32_t>(format.largest)) {
    return static_cast<std::uint8_t>(sign | format.largest_code);
  }
  const int smallest_normal = 1 - format.bias;
  if (magnitude < static_cast<std::uint32_t>(smallest_normal + 127) << 23) {
    // A subnormal counts multiples of the smallest one; one more than the largest is the smallest normal's
    // code. Adding 2^23 leaves no fraction bits, so the sum rounds to nearest even.
    const auto unit =
        std::bit_cast<float>(static_cast<std::uint32_t>(127 + format.mantissa_bits - smallest_normal) << 23);
    const float shifted = std::bit_cast<float>(magnitude) * unit + 0x1p23F;
    return static_cast<std::uint8_t>(sign | (std::bit_cast<std::uint32_t>(shifted) & 0xFFU));
  }
  const int dropped = 23 - format.mantissa_bits;
  const std::uint32_t odd = magnitude >> dropped & 1U;
  const std::uint32_t rounded = (magnitude + (1U << (dropped - 1)) - 1U + odd) >> dropped;
  return static_cast<std::uint8_t>(
      sign | (rounded - (static_cast<std::uint32_t>(127 - format.bias) << format.mantissa_bits)));
}

float decode_fp8(DType dtype, std::uint8_t code) {
  static const std::array<float, 256> e4m3 = decode_table(e4m3_format, false);
  static const std::array<float, 256> e5m2 = decode_table(e5m2_format, true);
  return dtype == DType::e5m2 ? e5m2[code] : e4m3[code];
}

float decode_e8m0(std::uint8_t code) {
  if (code == scale_nan) return std::numeric_limits<float>::quiet_NaN();
  if (code == 0) return 0x1p-127F;
  return std::bit_cast<float>(static_cast<std::uint32_t>(code) << 23);
}

float decode_fp16(std::uint16_t bits) {
  const int exponent = bits >> 10 & 0x1F;
  const int mantissa = bits & 0x3FF;
  const float sign = (bits & 0x8000) != 0 ? -1.0F : 1.0F;
  if (exponent == 0x1F) {
    return mantissa == 0 ? sign * std::numeric_limits<float>::infinity()
                         : std::numeric_limits<float>::quiet_NaN();
  }
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(mantissa), -24);
  return sign * std::ldexp(static_cast<float>(0x400 + mantissa), exponent - 25);
}

std::uint16_t encode_bf16(double value) {
  if (std::isnan(value)) return 0x7FFF;
  // Every bf16 is an fp32, so the last step only drops zero bits, or overflows to infinity.
  const double rounded = std::isinf(value) ? value : round_to(value, 7, -126);
  return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(static_cast<float>(rounded)) >> 16);
}

std::uint16_t encode_fp16(double value) {
  if (std::isnan(value)) return 0x7FFF;
  const auto sign = static_cast<std::uint16_t>(std::signbit(value) ? 0x8000 : 0);
  const double rounded = std::isinf(value) ? value : round_to(value, 10, -14);
  const double magnitude = std::fabs(rounded);
  if (magnitude > 65504.0) return static_cast<std::uint16_t>(sign | 0x7C00);
  if (magnitude < 0x1p-14) return static_cast<std::uint16_t>(sign | static_cast<int>(magnitude * 0x1p24));
  const int exponent = std::ilogb(magnitude);
  const int mantissa = static_cast<int>(std::ldexp(magnitude, 10 - exponent)) - 0x400;
  return static_cast<std::uint16_t>(sign | (exponent + 15) << 10 | mantissa);
}

}  // namespace mxjit::reference
