#include "device/fusion_problems.hpp"

#include <algorithm>
#include <cstring>

namespace mxjit::device {

using problem::InputLayout;
using problem::Pre;
using problem::Problem;
using problem::Quantize;
using problem::RmsNorm;
using problem::Swiglu;

std::vector<Pre> all_pre() {
  return {Swiglu{}, Swiglu{.interleave = true, .alpha = 1.0, .limit = {}},
          Swiglu{.interleave = false, .alpha = 1.702, .limit = 7.0},
          Swiglu{.interleave = true, .alpha = 1.702, .limit = 7.0}, RmsNorm{}};
}

std::vector<problem::Recipe> fusion_recipes() {
  std::vector<problem::Recipe> all;
  for (const Block& block : {Block{.rows = 1, .cols = 32}, Block{.rows = 1, .cols = 128},
                             Block{.rows = 32, .cols = 32}, Block{.rows = 128, .cols = 128}})
    for (const ScaleLayout layout : {ScaleLayout::plain, ScaleLayout::blocked}) {
      problem::Recipe recipe;
      recipe.block = block;
      recipe.scale_layout = layout;
      all.push_back(recipe);
    }
  problem::Recipe floats;
  floats.scaling = Scaling::fp32;
  floats.rounding = Rounding::none;
  for (const Block& block : {Block{.rows = 1, .cols = 128}, Block{.rows = 128, .cols = 128}}) {
    floats.block = block;
    all.push_back(floats);
  }
  floats.scale_layout = ScaleLayout::mn_major;
  all.push_back(floats);
  floats.scale_layout = ScaleLayout::plain;
  for (const Block::Kind kind : {Block::Kind::row, Block::Kind::tensor}) {
    floats.block = {.kind = kind, .rows = 1, .cols = 1};
    all.push_back(floats);
  }
  return all;
}

std::vector<Problem> fusions(const std::vector<Pre>& pres) {
  const auto all_recipes = fusion_recipes();
  const std::vector<problem::Shape> shapes = {{129, 322}, {2, 65, 160}, {200, 256}, {1, 2},
                                              {33, 130},  {3, 40, 34},  {384, 512}};
  std::vector<Problem> all;
  std::size_t turn = 0;
  for (const Pre& pre : pres)
    for (const DType dtype : input_types)
      for (const InputLayout layout : {InputLayout::row, InputLayout::col})
        for (const bool high : {false, true})
          for (const Axes& axes : axes_choices) {
            Quantize quantize;
            quantize.input.dtype = dtype;
            quantize.input.shape = shapes[turn % shapes.size()];
            quantize.input_layout = layout;
            quantize.recipe = all_recipes[turn % all_recipes.size()];
            quantize.axes = axes;
            quantize.pre = pre;
            quantize.emit_high = high;
            all.push_back(whole(quantize));
            ++turn;
          }
  return supported(all);
}

HostTensor ordinary(DType dtype, const std::vector<std::int64_t>& shape, double deviation, Random& random) {
  std::normal_distribution<float> normal(0.0F, static_cast<float>(deviation));
  HostTensor tensor{.dtype = dtype, .shape = shape, .bytes = {}};
  const auto count = static_cast<std::size_t>(tensor.elements());
  tensor.bytes.resize(count * size_of(dtype));
  for (std::size_t i = 0; i < count; ++i) {
    const float value = normal(random);
    std::uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    if (dtype == DType::fp32) {
      std::memcpy(&tensor.bytes[4 * i], &bits, 4);
    } else if (dtype == DType::bf16) {
      const auto high = static_cast<std::uint16_t>(bits >> 16);
      std::memcpy(&tensor.bytes[2 * i], &high, 2);
    } else {
      // An fp16 number with the same sign and mantissa, its exponent cut to those that fp16 has.
      const int exponent = std::clamp(static_cast<int>(bits >> 23 & 0xFF) - 127 + 15, 1, 30);
      const auto half = static_cast<std::uint16_t>(
          (bits >> 31) << 15 | static_cast<unsigned>(exponent) << 10 | (bits >> 13 & 0x3FF));
      std::memcpy(&tensor.bytes[2 * i], &half, 2);
    }
  }
  return tensor;
}

}  // namespace mxjit::device
