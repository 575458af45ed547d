// What kernels rely on where they divide in fp32: MAX / amax, rounded once, is the quotient taken in double
// and rounded to fp32 afterwards.
#include <gtest/gtest.h>

#include <bit>
#include <cstdint>

namespace mxjit {
namespace {

TEST(FloatQuotient, RoundedOnceOrThroughDoubleIsTheSame) {
  for (const float largest : {448.0F, 57344.0F})
    // The smallest exponent of 1e-12, one in the middle and the largest; in between only exponents change.
    for (const std::uint32_t exponent : {87U, 127U, 254U}) {
      std::uint32_t differing = 0;
      for (std::uint32_t mantissa = 0; mantissa < 1U << 23; ++mantissa) {
        const auto amax = std::bit_cast<float>(exponent << 23 | mantissa);
        const float once = largest / amax;
        const auto twice = static_cast<float>(static_cast<double>(largest) / static_cast<double>(amax));
        differing += std::bit_cast<std::uint32_t>(once) != std::bit_cast<std::uint32_t>(twice) ? 1 : 0;
      }
      EXPECT_EQ(differing, 0U) << largest << ", exponent " << exponent;
    }
}

TEST(FloatQuotient, NoQuotientIsSubnormal) {
  for (const float largest : {448.0F, 57344.0F})
    EXPECT_GT(largest / std::bit_cast<float>(0x7F7FFFFFU), std::bit_cast<float>(0x00800000U));
}

}  // namespace
}  // namespace mxjit
