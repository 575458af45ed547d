// The scale code of every bf16 magnitude, and of fp32 magnitudes, by the integer rules of the contract's
// table. The code under test takes a product for RCEIL, so that the two agree only if both are right.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <random>

#include "contract/builders.hpp"

namespace mxjit::contract {
namespace {

// E and m are the fields of an fp32; `power` is 8 for e4m3 and 15 for e5m2.
int expected_code(const std::string& rounding, bool e5m2, std::uint32_t pattern) {
  const std::uint32_t bits = pattern & 0x7FFFFFFF;  // of the magnitude
  const int exponent = static_cast<int>(bits >> 23 & 0xFF);
  const std::uint32_t mantissa = bits & 0x7FFFFF;
  const int power = e5m2 ? 15 : 8;
  if (exponent == 255) return 255;
  if (rounding == "floor") return std::max(0, exponent - power);
  if (rounding == "ceil") return std::max(0, exponent + (mantissa != 0 ? 1 : 0) - power);
  if (rounding == "even") {
    const int rounded = exponent + (mantissa >= (e5m2 ? 0x700000U : 0x780000U) ? 1 : 0);
    return rounded == 255 ? 255 : std::max(0, rounded - power);
  }
  if (bits == (e5m2 ? 0x07E00001U : 0x04600001U)) return 0;  // the product rounds down to 2^-127
  return std::max(0, exponent + (mantissa > 0x600000 ? 1 : 0) - power);
}

struct Rule {
  std::string rounding;
  bool e5m2;
};

class ScaleRules : public testing::TestWithParam<Rule> {
 protected:
  // Each pattern alone in a block of zeros.
  template <typename T>
  void check(DType dtype, const std::vector<T>& patterns, int shift) const {
    std::vector<T> x(patterns.size() * 32);
    for (std::size_t i = 0; i < patterns.size(); ++i) x[i * 32 + i % 32] = patterns[i];
    const auto rows = static_cast<std::int64_t>(patterns.size());
    const TensorMap out = run(
        fmt::format(
            R"("op":"quantize","input":{{"dtype":"{}","shape":[{},32]}},"format":"{}","scaling":"mx","block":32,"rounding":"{}")",
            to_string(dtype), rows, GetParam().e5m2 ? "e5m2" : "e4m3", GetParam().rounding),
        {{"x", tensor_of(dtype, {rows, 32}, x)}});
    for (std::size_t i = 0; i < patterns.size(); ++i) {
      const std::uint32_t bits = static_cast<std::uint32_t>(patterns[i]) << shift;
      ASSERT_EQ(out.at("s_row").bytes[i], expected_code(GetParam().rounding, GetParam().e5m2, bits))
          << fmt::format("{:#010x}", bits);
    }
  }
};

TEST_P(ScaleRules, EveryBf16) {
  std::vector<std::uint16_t> patterns(0x10000);
  for (std::size_t i = 0; i < patterns.size(); ++i) patterns[i] = static_cast<std::uint16_t>(i);
  check(DType::bf16, patterns, 16);
}

TEST_P(ScaleRules, Fp32AroundEveryBoundary) {
  std::vector<std::uint32_t> patterns;
  for (std::uint32_t exponent = 0; exponent < 256; ++exponent) {
    for (const std::uint32_t mantissa : {0U, 1U, 2U, 0x400000U, 0x5FFFFFU, 0x600000U, 0x600001U, 0x600002U,
                                         0x6FFFFFU, 0x700000U, 0x77FFFFU, 0x780000U, 0x7FFFFFU}) {
      patterns.push_back(exponent << 23 | mantissa);
      patterns.push_back(0x80000000U | exponent << 23 | mantissa);
    }
  }
  std::mt19937 random(1);
  for (int i = 0; i < 20000; ++i) patterns.push_back(static_cast<std::uint32_t>(random()));
  check(DType::fp32, patterns, 0);
}

INSTANTIATE_TEST_SUITE_P(Roundings, ScaleRules,
                         testing::Values(Rule{"rceil", false}, Rule{"floor", false}, Rule{"ceil", false},
                                         Rule{"even", false}, Rule{"rceil", true}, Rule{"floor", true},
                                         Rule{"ceil", true}, Rule{"even", true}),
                         [](const auto& rule) {
                           return rule.param.rounding + (rule.param.e5m2 ? "E5m2" : "E4m3");
                         });

}  // namespace
}  // namespace mxjit::contract
