// SwiGLU and RMSNorm before a quantization, and the values written beside it.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>

#include "contract/builders.hpp"

namespace mxjit::contract {
namespace {

std::uint16_t bf16(float value) {
  return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16);
}

std::vector<float> high(const std::string& pre, const std::vector<std::uint16_t>& row,
                        const TensorMap& more = {}) {
  TensorMap inputs = more;
  inputs["x"] = tensor_of(DType::bf16, {1, static_cast<std::int64_t>(row.size())}, row);
  const TensorMap out =
      run(R"("op":"quantize","input":{"dtype":"bf16","shape":[1,)" + std::to_string(row.size()) +
              R"(]},"scaling":"mx","block":32,"emit_high":true,"pre":)" + pre,
          inputs);
  std::vector<float> values;
  for (const std::uint16_t bits : elements_of<std::uint16_t>(out.at("y"))) {
    values.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16));
  }
  return values;
}

TEST(Fusions, SwigluTakesGateAndUpFromHalvesOrAlternating) {
  // sigmoid(16) is 1 - 1.1e-7, which bf16 does not see; sigmoid(0) is 0.5 but gate is 0.
  const std::vector<std::uint16_t> halves = {bf16(16), bf16(0), bf16(2), bf16(5)};
  EXPECT_EQ(high(R"({"kind":"swiglu"})", halves), (std::vector<float>{32, 0}));
  const std::vector<std::uint16_t> alternating = {bf16(16), bf16(2), bf16(0), bf16(5)};
  EXPECT_EQ(high(R"({"kind":"swiglu","interleave":true})", alternating), (std::vector<float>{32, 0}));
  // 1 * sigmoid(1) = 0.731058 -> bf16 0x3F3B; -1 * sigmoid(-1) = -0.268941 -> 0xBE8A.
  EXPECT_EQ(high(R"({"kind":"swiglu"})", {bf16(1), bf16(-1), bf16(1), bf16(1)}),
            (std::vector<float>{0.73046875F, -0.26953125F}));
}

TEST(Fusions, SwigluWithALimitIsTheClampedForm) {
  const std::string pre = R"({"kind":"swiglu","alpha":1.702,"limit":7})";
  // gate 10 -> 7, up -10 -> -7 + 1; sigmoid(11.9) is 1 - 6.7e-6.
  EXPECT_EQ(high(pre, {bf16(10), bf16(7), bf16(-10), bf16(100)}), (std::vector<float>{-42, 56}));
  const std::vector<float> special = high(pre, {bf16(std::nanf("")), bf16(INFINITY), bf16(1), bf16(0)});
  EXPECT_TRUE(std::isnan(special[0]));
  EXPECT_EQ(special[1], 7.0F);
}

TEST(Fusions, RmsNorm) {
  const TensorMap weight{
      {"weight", tensor_of<std::uint16_t>(DType::bf16, {4}, {bf16(1), bf16(2), bf16(-1), bf16(0)})}};
  // Mean square 9, so that every 3 becomes 1.
  EXPECT_EQ(high(R"({"kind":"rmsnorm","eps":0})", {bf16(3), bf16(3), bf16(-3), bf16(3)}, weight),
            (std::vector<float>{1, 2, 1, 0}));
  // Mean square 9 and eps 7: 3 / sqrt(16).
  EXPECT_EQ(high(R"({"kind":"rmsnorm","eps":7})", {bf16(3), bf16(3), bf16(-3), bf16(3)}, weight),
            (std::vector<float>{0.75F, 1.5F, 0.75F, 0}));
}

// A fused problem is its two steps, whatever the recipe and the axes.
TEST(Fusions, EqualTheTwoSteps) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal(0.0F, 3.0F);
  std::vector<std::uint16_t> x;
  for (int i = 0; i < 96 * 128; ++i) x.push_back(bf16(normal(random)));
  std::vector<std::uint16_t> weight;
  for (int i = 0; i < 128; ++i) weight.push_back(bf16(normal(random)));
  const HostTensor input = tensor_of(DType::bf16, {96, 128}, x);
  for (const std::string recipe :
       {R"("scaling":"mx","block":32,"axes":["row","col"],"scale_layout":"blocked")",
        R"("scaling":"mx","block":[32,32])", R"("scaling":"fp32","block":"row","axes":["row","col"])",
        R"("scaling":"fp32","block":"tensor")"}) {
    for (const std::string pre : {R"({"kind":"swiglu"})", R"({"kind":"rmsnorm"})"}) {
      SCOPED_TRACE(recipe + pre);
      TensorMap inputs{{"x", input}};
      if (pre.find("rms") != std::string::npos) inputs["weight"] = tensor_of(DType::bf16, {128}, weight);
      const TensorMap fused =
          run(R"("op":"quantize","input":{"dtype":"bf16","shape":[96,128]},"emit_high":true,)" + recipe +
                  R"(,"pre":)" + pre,
              inputs);
      const HostTensor& y = fused.at("y");
      const TensorMap second = run(R"("op":"quantize","input":{"dtype":"bf16","shape":[96,)" +
                                       std::to_string(y.shape[1]) + "]}," + recipe,
                                   {{"x", y}});
      for (const auto& [name, tensor] : second) EXPECT_EQ(fused.at(name).bytes, tensor.bytes) << name;
    }
  }
}

}  // namespace
}  // namespace mxjit::contract
