// The small number formats: FP8 (e4m3, e5m2), E8M0 scale codes, bf16 and fp16, to and from fp32.
#pragma once

#include <bit>
#include <cstdint>

#include "mxjit/types.hpp"

namespace mxjit::reference {

inline constexpr std::uint8_t fp8_nan = 0x7F;  // the one NaN that is written, in both FP8 formats
inline constexpr std::uint8_t scale_nan = 255;

/// Shape of an FP8 format: the bias and the mantissa bits of its codes, its largest finite value (1.75 *
/// 2^power) and that value's code.
struct Fp8Format {
  int bias;
  int mantissa_bits;
  int power;
  float largest;
  std::uint8_t largest_code;
};
inline constexpr Fp8Format e4m3_format{7, 3, 8, 448.0F, 0x7E};
inline constexpr Fp8Format e5m2_format{15, 2, 15, 57344.0F, 0x7B};
inline const Fp8Format& fp8_format(DType dtype) { return dtype == DType::e5m2 ? e5m2_format : e4m3_format; }

/// Rounds to nearest, ties to even, with subnormals; magnitudes above the largest become the largest; the
/// sign of zero stays; NaN becomes fp8_nan.
std::uint8_t encode_fp8(const Fp8Format& format, float value);
/// e5m2 codes of infinity decode to infinity.
float decode_fp8(DType dtype, std::uint8_t code);

/// 2^(code - 127); code 0 is the subnormal 2^-127, 255 is NaN.
float decode_e8m0(std::uint8_t code);

inline float decode_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}
float decode_fp16(std::uint16_t bits);

/// Round to nearest, ties to even, straight from the double (no second rounding); overflow becomes infinity.
std::uint16_t encode_bf16(double value);
std::uint16_t encode_fp16(double value);

}  // namespace mxjit::reference
