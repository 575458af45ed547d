// The routed experts: one case by hand, and the op against the separate ops it stands for.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>

#include "contract/builders.hpp"
#include "mxjit/error.hpp"

namespace mxjit::contract {
namespace {

// Hidden and intermediate size 1: expert 1 turns x into swiglu(16 x, 2 x) * 3, expert 2 into swiglu(16 x, x)
// * -1.
TEST(Moe, ByHand) {
  const std::string head =
      R"("op":"moe","tokens":3,"hidden":1,"intermediate":1,"experts":4,"top_k":2,"local_experts":[1,2],)"
      R"("weights":{"format":"e4m3","scaling":"fp32","block":"row"},"activations":{"format":"e4m3","scaling":"mx","block":32},)"
      R"("activation":{"kind":"swiglu"},"d":{"dtype":"fp32"},"routing_weight_on":)";
  TensorMap inputs{
      {"x", tensor_of<std::uint16_t>(DType::bf16, {3, 1}, {0x3F80, 0x4000, 0x3F80})},  // 1, 2, 1
      {"topk_ids", tensor_of<std::int32_t>(DType::i32, {3, 2}, {1, 2, 0, 1, 3, -1})},
      {"topk_weights", tensor_of<float>(DType::fp32, {3, 2}, {0.5F, 2, 9, 1, 9, 9})},
      {"w13", tensor_of<std::uint8_t>(DType::e4m3, {2, 2, 1}, {0x58, 0x38, 0x58, 0x38})},  // 16, 1
      {"w13_scale", tensor_of<float>(DType::fp32, {2, 2}, {1, 2, 1, 1})},
      {"w2", tensor_of<std::uint8_t>(DType::e4m3, {2, 1, 1}, {0x44, 0xB8})},  // 3, -1
      {"w2_scale", tensor_of<float>(DType::fp32, {2, 1}, {1, 1})}};
  // Token 0: 0.5 * 32 * 3 - 2 * 16. Token 1: expert 1 alone, 32 * sigmoid(32) * 4 * 3. Token 2: no local
  // expert. The activation is a power of two after its quantization: sigmoid(16) falls short of 1 by less
  // than it sees.
  EXPECT_EQ(elements_of<float>(run(head + R"("output")", inputs).at("y")), (std::vector<float>{16, 384, 0}));

  inputs["w2_bias"] = tensor_of<float>(DType::fp32, {2, 1}, {100, 10});
  EXPECT_EQ(elements_of<float>(run(head + R"("output")", inputs).at("y")),
            (std::vector<float>{16 + 50 + 20, 484, 0}));

  inputs.erase("w2_bias");
  // Weights on the input: token 0 sees 4 * sigmoid(...) instead; use weights that keep powers of two.
  inputs["topk_weights"] = tensor_of<float>(DType::fp32, {3, 2}, {2, 1, 9, 4, 9, 9});
  inputs["topk_ids"] = tensor_of<std::int64_t>(DType::i64, {3, 2}, {1, 2, 0, 1, 3, -1});
  // Token 0: swiglu(32, 4) * 3 - swiglu(16, 1). Token 1: x is 8: swiglu(128, 16) * 3.
  EXPECT_EQ(elements_of<float>(run(head + R"("input")", inputs).at("y")),
            (std::vector<float>{384 - 16, 6144, 0}));
}

HostTensor random_bf16(std::mt19937& random, std::vector<std::int64_t> shape) {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) count *= extent;
  std::normal_distribution<float> normal;
  std::vector<std::uint16_t> bits;
  for (std::int64_t i = 0; i < count; ++i) {
    bits.push_back(static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(normal(random)) >> 16));
  }
  return tensor_of(DType::bf16, std::move(shape), bits);
}

struct Recipes {
  std::string name;
  std::string weights;
  std::string activations;
};

class MoeRecipes : public testing::TestWithParam<Recipes> {};

// tokens 6, hidden 160, intermediate 64, one expert for all: the op is five ops in a row.
TEST_P(MoeRecipes, EqualTheSeparateOps) {
  const std::string& weights = GetParam().weights;
  const std::string& activations = GetParam().activations;
  std::mt19937 random(17);
  const HostTensor x = random_bf16(random, {6, 160});
  const auto quantized = [](const HostTensor& tensor, const std::string& recipe) {
    std::string shape = fmt::format("{},{}", tensor.shape[tensor.shape.size() - 2], tensor.shape.back());
    if (tensor.shape.size() == 3) shape = fmt::format("{},{}", tensor.shape[0], shape);
    return run(fmt::format(R"("op":"quantize","input":{{"dtype":"{}","shape":[{}]}},{})",
                           to_string(tensor.dtype), shape, recipe),
               {{"x", tensor}});
  };
  const TensorMap w13 = quantized(random_bf16(random, {1, 128, 160}), weights);
  const TensorMap w2 = quantized(random_bf16(random, {1, 160, 64}), weights);
  const TensorMap inputs{{"x", x},
                         {"topk_ids", tensor_of(DType::i32, {6, 1}, std::vector<std::int32_t>(6, 0))},
                         {"topk_weights", tensor_of<float>(DType::fp32, {6, 1}, {1, 2, 0.5F, 1, 1, 1})},
                         {"w13", w13.at("q_row")},
                         {"w13_scale", w13.at("s_row")},
                         {"w2", w2.at("q_row")},
                         {"w2_scale", w2.at("s_row")}};
  const std::vector<float> y = elements_of<float>(
      run(fmt::format(
              R"("op":"moe","tokens":6,"hidden":160,"intermediate":64,"experts":1,"top_k":1,"local_experts":[0,1],"weights":{{"format":"e4m3",{}}},"activations":{{"format":"e4m3",{}}},"activation":{{"kind":"swiglu","interleave":true}},"routing_weight_on":"output","d":{{"dtype":"fp32"}})",
              weights, activations),
          inputs)
          .at("y"));

  const auto scaling = [](const std::string& recipe) {
    const bool mx = recipe.find("\"mx\"") != std::string::npos;
    const std::size_t block = recipe.find("\"block\":");
    std::string fields = fmt::format(R"({{"kind":"{}",{})", mx ? "mx" : "fp32", recipe.substr(block));
    const std::size_t layout = fields.find("scale_layout");
    if (layout != std::string::npos) fields.replace(layout, 12, "layout");
    return fields + "}";
  };
  const auto product = [&](const TensorMap& a, std::int64_t cols, const TensorMap& b,
                           const std::string& b_shape, const std::string& epilogue) {
    return run(fmt::format(
                   R"("op":"gemm","a":{{"dtype":"e4m3","shape":[1,6,{}],"scaling":{}}},"b":{{"dtype":"e4m3","shape":[{}],"scaling":{}}},"d":{{"dtype":"fp32"}}{})",
                   cols, scaling(activations), b_shape, scaling(weights), epilogue),
               {{"a", a.at("q_row")},
                {"a_scale", a.at("s_row")},
                {"b", b.at("q_row")},
                {"b_scale", b.at("s_row")}})
        .at("d");
  };
  const auto as_batch = [](HostTensor tensor, DType dtype) {
    tensor.dtype = dtype;
    if (tensor.shape.size() == 2) tensor.shape.insert(tensor.shape.begin(), 1);
    return tensor;
  };
  const HostTensor activated = product(quantized(as_batch(x, DType::bf16), activations), 160, w13,
                                       "1,128,160", R"(,"epilogue":{"kind":"swiglu","interleave":true})");
  const HostTensor down = product(quantized(activated, activations), 64, w2, "1,160,64", "");
  const std::vector<float> expected = elements_of<float>(down);
  const std::vector<float> weight = elements_of<float>(inputs.at("topk_weights"));
  ASSERT_EQ(y.size(), expected.size());
  for (std::size_t i = 0; i < y.size(); ++i) ASSERT_EQ(y[i], expected[i] * weight[i / 160]) << i;
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, MoeRecipes,
    testing::Values(
        Recipes{"Mx", R"("scaling":"mx","block":32)", R"("scaling":"mx","block":32)"},
        Recipes{"MxSquareBlocked", R"("scaling":"mx","block":[32,32],"scale_layout":"blocked")",
                R"("scaling":"mx","block":32)"},
        Recipes{"Row", R"("scaling":"fp32","block":"row")", R"("scaling":"fp32","block":"row")"},
        Recipes{"TensorByRow", R"("scaling":"fp32","block":"tensor")", R"("scaling":"fp32","block":"row")"},
        Recipes{"Block", R"("scaling":"fp32","block":[128,128])", R"("scaling":"fp32","block":128)"}),
    [](const auto& recipes) { return recipes.param.name; });

TEST(Moe, OneScaleForAllActivationsIsRefused) {
  try {
    run(R"("op":"moe","tokens":0,"hidden":1,"intermediate":1,"experts":1,"top_k":1,"local_experts":[0,1],)"
        R"("weights":{"format":"e4m3","scaling":"fp32","block":"tensor"},"activations":{"format":"e4m3","scaling":"fp32","block":"tensor"},)"
        R"("activation":{"kind":"swiglu"},"d":{"dtype":"bf16"})",
        {{"x", tensor_of<std::uint16_t>(DType::bf16, {0, 1}, {})},
         {"topk_ids", tensor_of<std::int32_t>(DType::i32, {0, 1}, {})},
         {"topk_weights", tensor_of<float>(DType::fp32, {0, 1}, {})},
         {"w13", tensor_of<std::uint8_t>(DType::e4m3, {1, 2, 1}, {0, 0})},
         {"w13_scale", tensor_of<float>(DType::fp32, {1}, {1})},
         {"w2", tensor_of<std::uint8_t>(DType::e4m3, {1, 1, 1}, {0})},
         {"w2_scale", tensor_of<float>(DType::fp32, {1}, {1})}});
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported) << error.what();
    EXPECT_EQ(error.argument(), "/activations/block");
  }
}

}  // namespace
}  // namespace mxjit::contract
