// A Hugging Face config.json -> the problems that its linear layers and experts are.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "problem/problem.hpp"

namespace mxjit::problem {

struct ModelOptions {
  std::int64_t tp = 1;  ///< tensor parallel size: heads and intermediate extents are split over it
  std::int64_t ep =
      1;  ///< expert parallel size: experts are split over it, each expert's matrices still over tp
  std::int64_t max_tokens = 8192;  ///< activations have 1 to max_tokens rows, routed ones top_k times as many
  Recipe weights{.format = DType::e4m3,
                 .scaling = Scaling::mx,
                 .block = {},
                 .rounding = Rounding::rceil,
                 .scale_layout = ScaleLayout::blocked,
                 .amax_cap = {}};
  Recipe activations = weights;
  /// Adds what the backward pass needs: both axes of inputs, weights and gradients, and their two products.
  bool training = true;
  /// What training pads every expert's rows to. Inference takes groups of any size where the recipe does.
  int group_alignment = 128;
};

struct ModelProblem {
  /// The layer as the model names it, with "*" for its index, then what is done:
  /// "layers.*.self_attn.qkv_proj" is the product itself; ".input", ".weight", ".grad" quantize its operands
  /// (".train" on both axes); ".dgrad",
  /// ".wgrad" are the products of the backward pass. Problem::name is the same.
  std::string name;
  Problem problem;
};

struct ModelProblems {
  std::string architecture;
  std::vector<ModelProblem> problems;
};

/// Derives every linear and expert problem of one rank. The embedding, the router and the output head, which
/// checkpoints leave in high precision, are not among them. Throws Error(invalid_argument): argument() is the
/// JSON pointer of the field at fault in the config, or "tp", "ep", "max_tokens" for an option; an
/// architecture that is not known lists those that are and the fields looked for.
ModelProblems model_problems(std::string_view config_json, const ModelOptions& options);

/// The architectures that model_problems knows, as config.json names them.
std::vector<std::string_view> known_architectures();

}  // namespace mxjit::problem
