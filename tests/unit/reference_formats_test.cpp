// The small number formats against slow definitions: the nearest code by distance, ties to the even code.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>

#include "reference/fp8.hpp"

namespace mxjit::reference {
namespace {

// The value of an FP8 code, from the formats' definition.
double value_of(bool e5m2, int code) {
  const int bits = e5m2 ? 2 : 3;
  const int bias = e5m2 ? 15 : 7;
  const int exponent = (code & 0x7F) >> bits;
  const int mantissa = code & ((1 << bits) - 1);
  const double fraction = std::ldexp(mantissa, -bits);
  const double value =
      exponent == 0 ? std::ldexp(fraction, 1 - bias) : std::ldexp(1.0 + fraction, exponent - bias);
  return (code & 0x80) != 0 ? -value : value;
}

int nearest(bool e5m2, double value) {
  const int largest = e5m2 ? 0x7B : 0x7E;
  // Clamped first: far above the largest value all distances round to the same double.
  const double magnitude = std::min(std::fabs(value), value_of(e5m2, largest));
  int best = 0;
  for (int code = 0; code <= largest; ++code) {
    const double distance = std::fabs(magnitude - value_of(e5m2, code));
    const double best_distance = std::fabs(magnitude - value_of(e5m2, best));
    if (distance < best_distance || (distance == best_distance && code % 2 == 0)) best = code;
  }
  return best | (std::signbit(value) ? 0x80 : 0);
}

TEST(Formats, Fp8DecodesEveryCode) {
  for (const bool e5m2 : {false, true}) {
    const DType dtype = e5m2 ? DType::e5m2 : DType::e4m3;
    for (int code = 0; code < 256; ++code) {
      const float value = decode_fp8(dtype, static_cast<std::uint8_t>(code));
      const int magnitude = code & 0x7F;
      if (magnitude > (e5m2 ? 0x7C : 0x7E)) {
        EXPECT_TRUE(std::isnan(value)) << code;
      } else if (e5m2 && magnitude == 0x7C) {
        EXPECT_TRUE(std::isinf(value)) << code;
      } else {
        EXPECT_EQ(value, value_of(e5m2, code)) << code;
      }
    }
  }
}

TEST(Formats, Fp8EncodesToTheNearest) {
  std::mt19937 random(7);
  for (const bool e5m2 : {false, true}) {
    const Fp8Format& format = fp8_format(e5m2 ? DType::e5m2 : DType::e4m3);
    const auto check = [&](float value) {
      ASSERT_EQ(encode_fp8(format, value), nearest(e5m2, value))
          << std::hexfloat << value << (e5m2 ? " e5m2" : " e4m3");
    };
    for (int code = 0; code < (e5m2 ? 0x7B : 0x7E); ++code) {
      // Every code, every midpoint, and their fp32 neighbours.
      for (const double exact :
           {value_of(e5m2, code), (value_of(e5m2, code) + value_of(e5m2, code + 1)) / 2}) {
        const auto value = static_cast<float>(exact);
        for (const float x : {value, std::nextafterf(value, 1e9F), std::nextafterf(value, -1e9F)}) {
          check(x);
          check(-x);
        }
      }
    }
    for (int i = 0; i < 20000; ++i) {
      const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
      if (!std::isnan(value)) check(value);
    }
    EXPECT_EQ(encode_fp8(format, std::nanf("")), 0x7F);
    EXPECT_EQ(encode_fp8(format, -std::nanf("")), 0x7F);
    EXPECT_EQ(encode_fp8(format, INFINITY), e5m2 ? 0x7B : 0x7E);
    EXPECT_EQ(encode_fp8(format, -0.0F), 0x80);
  }
}

TEST(Formats, E8m0) {
  EXPECT_EQ(decode_e8m0(0), std::ldexp(1.0F, -127));
  EXPECT_EQ(decode_e8m0(1), std::ldexp(1.0F, -126));
  EXPECT_EQ(decode_e8m0(127), 1.0F);
  EXPECT_EQ(decode_e8m0(254), std::ldexp(1.0F, 127));
  EXPECT_TRUE(std::isnan(decode_e8m0(255)));
}

TEST(Formats, Bf16AndFp16RoundOnceFromDouble) {
  EXPECT_EQ(encode_bf16(1.0), 0x3F80);
  EXPECT_EQ(encode_bf16(1.0 + 0x1p-8), 0x3F80);            // a tie, to even
  EXPECT_EQ(encode_bf16(1.0 + 0x1p-8 + 0x1p-50), 0x3F81);  // fp32 on the way would have lost the last bit
  EXPECT_EQ(encode_bf16(1.0 + 3 * 0x1p-8), 0x3F82);
  EXPECT_EQ(encode_bf16(-0.0), 0x8000);
  EXPECT_EQ(encode_bf16(0x1p-133), 0x0001);
  EXPECT_EQ(encode_bf16(0x1p-134), 0x0000);
  EXPECT_EQ(encode_bf16(0x1.8p-134), 0x0001);
  EXPECT_EQ(encode_bf16(0x1.FEp127), 0x7F7F);
  EXPECT_EQ(encode_bf16(0x1.FFp127), 0x7F80);
  EXPECT_EQ(encode_bf16(-1e300), 0xFF80);
  EXPECT_EQ(encode_fp16(1.0), 0x3C00);
  EXPECT_EQ(encode_fp16(1.0 + 0x1p-11), 0x3C00);
  EXPECT_EQ(encode_fp16(1.0 + 0x1p-11 + 0x1p-50), 0x3C01);
  EXPECT_EQ(encode_fp16(65504.0), 0x7BFF);
  EXPECT_EQ(encode_fp16(65519.0), 0x7BFF);
  EXPECT_EQ(encode_fp16(65520.0), 0x7C00);
  EXPECT_EQ(encode_fp16(-0x1p-24), 0x8001);
  EXPECT_EQ(encode_fp16(0x1p-25), 0x0000);
  EXPECT_EQ(encode_fp16(0x1p-14), 0x0400);
  for (int bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    if (!std::isnan(decode_bf16(half))) {
      ASSERT_EQ(encode_bf16(decode_bf16(half)), half);
    }
    if (!std::isnan(decode_fp16(half))) {
      ASSERT_EQ(encode_fp16(decode_fp16(half)), half);
    }
  }
}

}  // namespace
}  // namespace mxjit::reference
