#include "mxjit/recipe.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

#include "mxjit/error.hpp"

namespace mxjit::cli {
namespace {

using Kind = Block::Kind;

problem::Recipe mx(std::int32_t rows, std::int32_t cols) {
  problem::Recipe recipe;
  recipe.block = {Kind::extents, rows, cols};
  return recipe;
}

problem::Recipe fp32(const Block& block) {
  problem::Recipe recipe;
  recipe.scaling = Scaling::fp32;
  recipe.rounding = Rounding::none;
  recipe.block = block;
  return recipe;
}

const std::array<CheckpointRecipe, 5>& recipes() {
  static const std::array<CheckpointRecipe, 5> all = {{
      {"mxfp8", mx(1, 32), "_scale"},
      {"mxfp8-32x32", mx(32, 32), "_scale"},
      {"fp8-row", fp32({.kind = Kind::row}), "_scale"},
      {"fp8-block128", fp32({Kind::extents, 128, 128}), "_scale_inv"},
      {"fp8-tensor", fp32({.kind = Kind::tensor}), "_scale"},
  }};
  return all;
}

nlohmann::ordered_json compressed_tensors_config(std::string_view weight_strategy,
                                                 std::string_view activation_strategy,
                                                 const std::vector<std::string>& kept) {
  const auto side = [](std::string_view strategy, bool dynamic) {
    return nlohmann::ordered_json{{"num_bits", 8},
                                  {"type", "float"},
                                  {"symmetric", true},
                                  {"strategy", strategy},
                                  {"dynamic", dynamic}};
  };
  return {{"quant_method", "compressed-tensors"},
          {"format", "float-quantized"},
          {"quantization_status", "compressed"},
          {"config_groups",
           {{"group_0",
             {{"targets", {"Linear"}},
              {"weights", side(weight_strategy, false)},
              {"input_activations", side(activation_strategy, true)}}}}},
          {"ignore", kept}};
}

}  // namespace

const CheckpointRecipe& checkpoint_recipe(std::string_view name) {
  for (const CheckpointRecipe& recipe : recipes())
    if (recipe.name == name) return recipe;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("--recipe: \"{}\"; expected {}", name, fmt::join(checkpoint_recipe_names(), ", ")),
              "--recipe");
}

std::vector<std::string> checkpoint_recipe_names() {
  std::vector<std::string> names;
  for (const CheckpointRecipe& recipe : recipes()) names.emplace_back(recipe.name);
  return names;
}

problem::Problem weight_problem(const CheckpointRecipe& recipe, const HostTensor& weight) {
  problem::Quantize quantize;
  quantize.input.dtype = weight.dtype;
  quantize.input.shape.assign(weight.shape.begin(), weight.shape.end());
  quantize.recipe = recipe.recipe;
  quantize.axes = {.row = true, .col = false};
  return problem::with_defaults({.name = {}, .op = quantize});
}

std::vector<std::int64_t> checkpoint_scale_shape(const CheckpointRecipe& recipe,
                                                 std::vector<std::int64_t> shape) {
  if (recipe.recipe.block.kind == Kind::row) shape.push_back(1);
  return shape;
}

nlohmann::ordered_json quantization_config(const CheckpointRecipe& recipe,
                                           const std::vector<std::string>& kept) {
  const Block& block = recipe.recipe.block;
  if (block.kind == Kind::row) return compressed_tensors_config("channel", "token", kept);
  if (block.kind == Kind::tensor) return compressed_tensors_config("tensor", "tensor", kept);
  const bool mx = recipe.recipe.scaling == Scaling::mx;
  nlohmann::ordered_json config = {{"quant_method", mx ? "mxfp8" : "fp8"},
                                   {"activation_scheme", "dynamic"},
                                   {"fmt", "e4m3"},
                                   {"weight_block_size", {block.rows, block.cols}}};
  if (mx) config["scale_fmt"] = "ue8m0";
  config["modules_to_not_convert"] = kept;
  return config;
}

}  // namespace mxjit::cli
