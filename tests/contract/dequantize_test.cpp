// Decoding: single values by hand, and every recipe's output decoded to within the format's error.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>

#include "contract/builders.hpp"

namespace mxjit::contract {
namespace {

float bf16_value(std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }

TEST(Dequantize, SmallestAndLargestScales) {
  std::vector<std::uint8_t> q(4 * 32, 0);
  q[0] = 0x38;   // 1 * 2^-127
  q[1] = 0x01;   // 2^-9 * 2^-127
  q[32] = 0x78;  // 256 * 2^120 does not fit
  q[33] = 0xF0;  // -128 * 2^120 does
  q[64] = 0x38;  // scale code 255
  q[96] = 0x7F;
  q[97] = 0x80;
  const TensorMap inputs{{"q", tensor_of(DType::e4m3, {4, 32}, q)},
                         {"s", tensor_of<std::uint8_t>(DType::e8m0, {4, 1}, {0, 247, 255, 127})}};
  const std::string fields =
      R"("op":"dequantize","q":{"dtype":"e4m3","shape":[4,32]},"scaling":"mx","block":32,"axis":"row","output":{"dtype":)";
  const std::vector<float> x = elements_of<float>(run(fields + R"("fp32"})", inputs).at("x"));
  EXPECT_EQ(x[0], 0x1p-127F);
  EXPECT_EQ(x[1], 0x1p-136F);
  EXPECT_EQ(x[32], INFINITY);
  EXPECT_EQ(x[33], -0x1p127F);
  EXPECT_TRUE(std::isnan(x[64]) && std::isnan(x[65]));
  EXPECT_TRUE(std::isnan(x[96]));
  EXPECT_TRUE(x[97] == 0.0F && std::signbit(x[97]));
  const std::vector<std::uint16_t> h = elements_of<std::uint16_t>(run(fields + R"("bf16"})", inputs).at("x"));
  EXPECT_EQ(h[0], 0x0040);
  EXPECT_EQ(h[1], 0x0000);
  EXPECT_EQ(h[32], 0x7F80);
  EXPECT_EQ(h[33], 0xFF00);
}

struct Recipe {
  std::string name;
  std::string recipe;  // what quantize and dequantize share
  std::string groups;
  std::vector<std::int32_t> offsets;
  int owned_rows;  // rows whose values must come back; the others are zero
};

std::vector<Recipe> recipes() {
  const std::string g1 = R"(,"groups":{"count":3,"axis":"m","alignment":1})";
  const std::string g32 = R"(,"groups":{"count":3,"axis":"m","alignment":32})";
  const std::string g128 = R"(,"groups":{"count":3,"axis":"m","alignment":128})";
  return {
      {"Mx32", R"("scaling":"mx","block":32)", "", {}, 300},
      {"Mx32Blocked", R"("scaling":"mx","block":32,"scale_layout":"blocked")", "", {}, 300},
      {"Mx128", R"("scaling":"mx","block":128)", "", {}, 300},
      {"Mx32x32", R"("scaling":"mx","block":[32,32])", "", {}, 300},
      {"Mx128x128Blocked", R"("scaling":"mx","block":[128,128],"scale_layout":"blocked")", "", {}, 300},
      {"Fp32Row", R"("scaling":"fp32","block":"row")", "", {}, 300},
      {"Fp32Tensor", R"("scaling":"fp32","block":"tensor")", "", {}, 300},
      {"Fp32Block", R"("scaling":"fp32","block":128)", "", {}, 300},
      {"Fp32BlockTurned", R"("scaling":"fp32","block":128,"scale_layout":"mn_major")", "", {}, 300},
      {"Fp32Square", R"("scaling":"fp32","block":[128,128])", "", {}, 300},
      {"Mx32Groups32", R"("scaling":"mx","block":32,"scale_layout":"blocked")", g32, {32, 32, 256}, 256},
      {"Mx32x32Groups32",
       R"("scaling":"mx","block":[32,32],"scale_layout":"blocked")",
       g32,
       {64, 96, 256},
       256},
      {"Fp32RowGroups", R"("scaling":"fp32","block":"row")", g1, {5, 5, 256}, 256},
      {"Mx32Groups128", R"("scaling":"mx","block":32,"scale_layout":"blocked")", g128, {128, 128, 256}, 256}};
}

class DequantizeRecipes : public testing::TestWithParam<Recipe> {};

TEST_P(DequantizeRecipes, ReturnTheValues) {
  const Recipe& p = GetParam();
  std::mt19937 random(11);
  std::normal_distribution<float> normal;
  std::vector<float> x;
  for (int i = 0; i < 300 * 200; ++i) x.push_back(normal(random));
  const HostTensor input = tensor_of(DType::fp32, {300, 200}, x);
  for (const std::string axis : {"row", "col"}) {
    SCOPED_TRACE(axis);
    TensorMap inputs{{"x", input}};
    if (!p.offsets.empty()) inputs["offsets"] = tensor_of(DType::i32, {3}, p.offsets);
    const TensorMap coded = run(R"("op":"quantize","input":{"dtype":"fp32","shape":[300,200]},"axes":[")" +
                                    axis + R"("],)" + p.recipe + p.groups,
                                inputs);
    TensorMap decode_inputs{{"q", coded.at("q_" + axis)}, {"s", coded.at("s_" + axis)}};
    if (!p.offsets.empty()) decode_inputs["offsets"] = inputs.at("offsets");
    const TensorMap back =
        run(R"("op":"dequantize","q":{"dtype":"e4m3","shape":[300,200]},"output":{"dtype":"fp32"},"axis":")" +
                axis + R"(",)" + p.recipe + p.groups,
            decode_inputs);
    const std::vector<float> y = elements_of<float>(back.at("x"));
    for (std::size_t r = 0; r < 300; ++r) {
      for (std::size_t c = 0; c < 200; ++c) {
        const float value = x[r * 200 + c];
        const float decoded = y[r * 200 + c];
        if (static_cast<int>(r) >= p.owned_rows && decoded == 0.0F) continue;
        // Half a last place of 3 mantissa bits, or of the smallest subnormal under the largest scale here.
        ASSERT_NEAR(decoded, value, std::max(std::fabs(value) / 16.0F, 5.0F * 0x1p-16F)) << r << "," << c;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Recipes, DequantizeRecipes, testing::ValuesIn(recipes()),
                         [](const auto& recipe) { return recipe.param.name; });

TEST(Dequantize, Fp32ScalesMultiplyInFp32AndRoundOnce) {
  const float scale = 0.3F;
  const TensorMap out = run(
      R"("op":"dequantize","q":{"dtype":"e4m3","shape":[1,2]},"scaling":"fp32","block":"row","axis":"row","output":{"dtype":"bf16"})",
      {{"q", tensor_of<std::uint8_t>(DType::e4m3, {1, 2}, {0x38, 0xC4})},
       {"s", tensor_of<float>(DType::fp32, {1}, {scale})}});
  const std::vector<std::uint16_t> x = elements_of<std::uint16_t>(out.at("x"));
  EXPECT_EQ(x[0], 0x3E9A);                   // 0.3 is between 0x3E99 and 0x3E9A, nearer the second
  EXPECT_EQ(bf16_value(x[1]), -0.8984375F);  // -3 * 0.3
}

}  // namespace
}  // namespace mxjit::contract
