// The golden MoE linear layer: three quantizations feed its forward pass and its two gradients.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "contract/builders.hpp"
#include "contract/golden.hpp"
#include "safetensors/safetensors.hpp"

namespace mxjit::contract {
namespace {

class GoldenComposite : public testing::TestWithParam<std::string> {};

TEST_P(GoldenComposite, MoeLinear) {
  if (goldens().empty()) GTEST_SKIP() << "MXJIT_GOLDENS is not set";
  const std::filesystem::path folder = goldens() / "moe_linear_mx_4x320x128x96";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no such case in MXJIT_GOLDENS";
  const std::string& layout = GetParam();
  const TensorMap in = safetensors::read(folder / "in.safetensors").tensors;
  const TensorMap expect = safetensors::read(folder / "expect.safetensors").tensors;
  const Comparison comparison = read_comparison(folder / "expect.json");

  const auto quantized = [&](const std::string& name, const std::string& shape, bool grouped) {
    TensorMap inputs{{"x", in.at(name)}};
    if (grouped) inputs["offsets"] = in.at("offsets");
    return run(
        fmt::format(R"("op":"quantize","input":{{"dtype":"bf16","shape":{}}},"scaling":"mx","block":32,)"
                    R"("axes":["row","col"],"rounding":"rceil","scale_layout":"{}","groups":{})",
                    shape, layout, grouped ? R"({"count":4,"axis":"m","alignment":32})" : "null"),
        inputs);
  };
  const TensorMap x = quantized("x", "[320,128]", true);
  const TensorMap w = quantized("w", "[4,96,128]", false);
  const TensorMap grad = quantized("grad_out", "[320,96]", true);

  const auto product = [&](const TensorMap& a, const std::string& a_axis, const std::string& a_shape,
                           const TensorMap& b, const std::string& b_axis, const std::string& b_shape,
                           const std::string& kind) {
    const auto operand = [&](const std::string& shape) {
      return fmt::format(
          R"({{"dtype":"e4m3","shape":{},"scaling":{{"kind":"mx","block":32,"layout":"{}"}}}})", shape,
          layout);
    };
    return run(fmt::format(R"("op":"gemm","a":{},"b":{},"d":{{"dtype":"fp32"}},"accumulation":"exact",)"
                           R"("groups":{{"kind":"{}","count":4}})",
                           operand(a_shape), operand(b_shape), kind),
               {{"a", a.at("q_" + a_axis)},
                {"a_scale", a.at("s_" + a_axis)},
                {"b", b.at("q_" + b_axis)},
                {"b_scale", b.at("s_" + b_axis)},
                {"offsets", in.at("offsets")}})
        .at("d");
  };
  EXPECT_EQ(
      difference(product(x, "row", "[320,128]", w, "row", "[4,96,128]", "m"), expect.at("fwd"), comparison),
      "");
  EXPECT_EQ(difference(product(grad, "row", "[320,96]", w, "col", "[4,128,96]", "m"), expect.at("dgrad"),
                       comparison),
            "");
  EXPECT_EQ(difference(product(grad, "col", "[96,320]", x, "col", "[128,320]", "k"), expect.at("wgrad"),
                       comparison),
            "");
}

INSTANTIATE_TEST_SUITE_P(Layouts, GoldenComposite, testing::Values("plain", "blocked"),
                         [](const auto& layout) { return layout.param; });

}  // namespace
}  // namespace mxjit::contract
