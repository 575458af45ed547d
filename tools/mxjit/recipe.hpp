// The checkpoint recipes of `mxjit quantize`: which problem a weight becomes, and how its scales are named.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "problem/problem.hpp"
#include "safetensors/host_tensor.hpp"

namespace mxjit::cli {

struct CheckpointRecipe {
  std::string_view name;
  problem::Recipe recipe;
  std::string_view scale_suffix;  // appended to the weight's name
};

/// The recipe named `name`. Throws Error(invalid_argument) listing the names.
const CheckpointRecipe& checkpoint_recipe(std::string_view name);
std::vector<std::string> checkpoint_recipe_names();

/// The problem that quantizes one weight (N,K) or (E,N,K) along K.
problem::Problem weight_problem(const CheckpointRecipe& recipe, const HostTensor& weight);

/// Shape of the scales in a checkpoint: that of the problem, except that loaders expect one factor a row as
/// a column vector (N,1).
std::vector<std::int64_t> checkpoint_scale_shape(const CheckpointRecipe& recipe,
                                                 std::vector<std::int64_t> shape);

/// The checkpoint's "quantization_config"; `kept` are the modules whose matrices stay as they were.
nlohmann::ordered_json quantization_config(const CheckpointRecipe& recipe,
                                           const std::vector<std::string>& kept);

}  // namespace mxjit::cli
