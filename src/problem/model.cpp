#include "problem/model.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "mxjit/error.hpp"
#include "problem/fields.hpp"
#include "problem/model_families.hpp"

namespace mxjit::problem {

using nlohmann::json;

namespace {

// Linear layers and experts -> problems.
class Builder {
 public:
  explicit Builder(const ModelOptions& options) : options_(options) {}

  void add(const Linear& linear) {
    const Extent tokens(1, options_.max_tokens);
    quantize(linear.name + ".input", batched(linear, tokens, linear.k), options_.activations, kRow, {});
    quantize(linear.name + ".weight", batched(linear, linear.n, linear.k), options_.weights, kRow, {});
    Gemm forward = product(batched(linear, tokens, linear.k), options_.activations,
                           batched(linear, linear.n, linear.k), options_.weights);
    if (linear.bias) forward.bias = DType::bf16;
    add(linear.name, forward);
    if (!options_.training) return;
    quantize(linear.name + ".input.train", batched(linear, tokens, linear.k), options_.activations, kBoth,
             {});
    quantize(linear.name + ".weight.train", batched(linear, linear.n, linear.k), options_.weights, kBoth, {});
    quantize(linear.name + ".grad.train", batched(linear, tokens, linear.n), options_.activations, kBoth, {});
    add(linear.name + ".dgrad", product(batched(linear, tokens, linear.n), options_.activations,
                                        batched(linear, linear.k, linear.n), options_.weights));
    add(linear.name + ".wgrad", product(batched(linear, linear.n, tokens), options_.activations,
                                        batched(linear, linear.k, tokens), options_.activations));
  }

  void add(const Experts& experts) {
    const Extent tokens(1, options_.max_tokens);
    Moe moe;
    moe.tokens = tokens;
    moe.hidden = experts.hidden;
    moe.intermediate = experts.intermediate;
    moe.experts = experts.count;
    moe.top_k = experts.top_k;
    moe.local_count = experts.local;
    moe.weights = options_.weights;
    moe.activations = options_.activations;
    moe.activation = experts.activation;
    moe.weight_on_input = experts.weight_on_input;
    add(experts.name, moe);
    add_grouped(experts.name + ".gate_up_proj", experts, 2 * experts.intermediate, experts.hidden);
    add_grouped(experts.name + ".down_proj", experts, experts.hidden, experts.intermediate);
  }

  std::vector<ModelProblem> take() { return std::move(problems_); }

 private:
  static constexpr Axes kRow{.row = true, .col = false};
  static constexpr Axes kBoth{.row = true, .col = true};

  // One matrix of every expert: rows of `k` features sorted by expert, weights (n, k) each.
  void add_grouped(const std::string& name, const Experts& experts, std::int64_t n, std::int64_t k) {
    const Extent rows(1, options_.max_tokens * experts.top_k);
    const std::int64_t e = experts.local;
    const int free_alignment = options_.activations.block.rows > 1 ? options_.group_alignment : 1;
    quantize(name + ".input", {rows, k}, options_.activations, kRow, MGroups{e, free_alignment});
    quantize(name + ".weight", {e, n, k}, options_.weights, kRow, {});
    Gemm forward = product({rows, k}, options_.activations, {e, n, k}, options_.weights);
    forward.groups = GemmGroups{GemmGroupKind::m, e};
    if (experts.bias) forward.bias = DType::bf16;
    add(name, forward);
    if (!options_.training) return;
    const MGroups padded{e, options_.group_alignment};
    quantize(name + ".input.train", {rows, k}, options_.activations, kBoth, padded);
    quantize(name + ".weight.train", {e, n, k}, options_.weights, kBoth, {});
    quantize(name + ".grad.train", {rows, n}, options_.activations, kBoth, padded);
    Gemm dgrad = product({rows, n}, options_.activations, {e, k, n}, options_.weights);
    dgrad.groups = GemmGroups{GemmGroupKind::m, e};
    add(name + ".dgrad", dgrad);
    Gemm wgrad = product({n, rows}, options_.activations, {k, rows}, options_.activations);
    wgrad.groups = GemmGroups{GemmGroupKind::k, e};
    add(name + ".wgrad", wgrad);
  }

  static Shape batched(const Linear& linear, Extent rows, Extent columns) {
    if (linear.batch == 0) return {rows, columns};
    return {linear.batch, rows, columns};
  }

  static Operand operand(const Shape& shape, const Recipe& recipe) {
    Operand operand;
    operand.tensor.dtype = recipe.format;
    operand.tensor.shape = shape;
    operand.scaling =
        OperandScaling{.kind = recipe.scaling, .block = recipe.block, .layout = recipe.scale_layout};
    return operand;
  }

  static Gemm product(const Shape& a, const Recipe& a_recipe, const Shape& b, const Recipe& b_recipe) {
    Gemm gemm;
    gemm.a = operand(a, a_recipe);
    gemm.b = operand(b, b_recipe);
    return gemm;
  }

  void quantize(const std::string& name, const Shape& shape, const Recipe& recipe, Axes axes,
                std::optional<MGroups> groups) {
    Quantize op;
    op.input.shape = shape;
    op.recipe = recipe;
    op.axes = axes;
    op.groups = groups;
    add(name, op);
  }

  template <class Op>
  void add(const std::string& name, const Op& op) {
    Problem problem;
    problem.name = name;
    problem.op = op;
    validate(problem);
    problems_.push_back({name, with_defaults(std::move(problem))});
  }

  ModelOptions options_;
  std::vector<ModelProblem> problems_;
};

void check_option(std::int64_t value, std::int64_t high, const std::string& name) {
  if (value < 1 || value > high)
    fail(name, fmt::format("an integer from 1 to {}", high), fmt::to_string(value));
}

const Family& find_family(const json& config) {
  const json* names = config.contains("architectures") ? &config["architectures"] : nullptr;
  if (names != nullptr && names->is_array()) {
    for (const json& name : *names) {
      for (const Family& family : model_families()) {
        if (name == family.architecture) return family;
      }
    }
  }
  const bool named = names != nullptr && !names->is_null();
  if (!named && config.contains("model_type")) {
    for (const Family& family : model_families()) {
      if (config["model_type"] == family.model_type) return family;
    }
  }
  const json& got = named ? *names : config.value("model_type", json(nullptr));
  fail(named                           ? "/architectures"
       : config.contains("model_type") ? "/model_type"
                                       : "/architectures",
       fmt::format(
           "a known architecture (looked for in architectures, then in model_type where there is none): {}",
           fmt::join(known_architectures(), ", ")),
       describe(got));
}

}  // namespace

std::vector<std::string_view> known_architectures() {
  std::vector<std::string_view> names;
  for (const Family& family : model_families()) names.push_back(family.architecture);
  return names;
}

ModelProblems model_problems(std::string_view config_json, const ModelOptions& options) {
  constexpr std::int64_t most = 1 << 20;
  check_option(options.tp, most, "tp");
  check_option(options.ep, most, "ep");
  check_option(options.max_tokens, std::int64_t{1} << 31, "max_tokens");
  const json config = read_json(config_json, "model config");
  if (!config.is_object()) fail("", "a JSON object, as config.json is", describe(config));
  const Family& family = find_family(config);

  const json* fields = &config;
  std::string pointer;
  if (!family.section.empty()) {
    pointer = join_pointer("", family.section);
    const auto section = config.find(family.section);
    if (section == config.end() || !section->is_object()) {
      fail(pointer, "an object with the text model's fields",
           section == config.end() ? "none" : describe(*section));
    }
    fields = &*section;
  }
  const Layers layers = family.layers(ModelConfig(*fields, pointer), {.tp = options.tp, .ep = options.ep});

  Builder builder(options);
  for (const Linear& linear : layers.linears) builder.add(linear);
  if (layers.experts) builder.add(*layers.experts);
  return {std::string(family.architecture), builder.take()};
}

}  // namespace mxjit::problem
