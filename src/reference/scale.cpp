#include "reference/scale.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "reference/fp8.hpp"

namespace mxjit::reference {
namespace {

constexpr std::uint32_t mantissa_mask = 0x7FFFFF;

// The scale amax / MAX as an fp32 product, rounded up to a power of two.
int rceil_code(float amax, DType format) {
  const std::uint32_t reciprocal =
      format == DType::e5m2 ? 0x37924925U : 0x3B124925U;  // fp32 nearest to 1 / MAX
  const float descale = amax * std::bit_cast<float>(reciprocal);
  const auto bits = std::bit_cast<std::uint32_t>(descale);
  const int exponent = static_cast<int>(bits >> 23);
  const std::uint32_t mantissa = bits & mantissa_mask;
  // Below the normal range code 0 stands for 2^-127, which is the mantissa 0x400000.
  if (exponent == 0) return mantissa > 0x400000U ? 1 : 0;
  return exponent + (mantissa != 0 ? 1 : 0);
}

}  // namespace

std::uint8_t mx_code(float amax, Rounding rounding, DType format) {
  if (!std::isfinite(amax)) return scale_nan;
  const Fp8Format& shape = fp8_format(format);
  const auto bits = std::bit_cast<std::uint32_t>(amax);
  const std::uint32_t mantissa = bits & mantissa_mask;
  int exponent = static_cast<int>(bits >> 23);
  switch (rounding) {
    case Rounding::floor:
      break;
    case Rounding::ceil:
      exponent += mantissa != 0 ? 1 : 0;
      break;
    case Rounding::even:
      // Rounded to the mantissa bits of the format; what carries into the next power of two counts there.
      exponent += mantissa >= (format == DType::e5m2 ? 0x700000U : 0x780000U) ? 1 : 0;
      if (exponent == scale_nan) return scale_nan;
      break;
    default:
      return static_cast<std::uint8_t>(rceil_code(amax, format));
  }
  return static_cast<std::uint8_t>(std::max(0, exponent - shape.power));
}

float mx_factor(std::uint8_t code) {
  return code == scale_nan ? decode_e8m0(scale_nan) : decode_e8m0(static_cast<std::uint8_t>(254 - code));
}

float fp32_factor(float amax, Rounding rounding, DType format) {
  const double largest = fp8_format(format).largest;
  const double divisor = std::isnan(amax) ? amax : std::max(static_cast<double>(amax), 1e-12);
  const auto factor = static_cast<float>(largest / divisor);
  if (rounding != Rounding::pow2 || std::isnan(factor)) return factor;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(factor) & ~mantissa_mask);
}

}  // namespace mxjit::reference
