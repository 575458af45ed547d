// Op "moe": for every token and every local expert it is routed to: gate|up product, activation, down
// product; then the weighted sum. Between the steps values are fp32, quantized where the problem says.
#include <cmath>

#include "mxjit/error.hpp"
#include "reference/gemm.hpp"
#include "reference/layout.hpp"
#include "reference/matrix.hpp"
#include "reference/ops.hpp"
#include "reference/parallel.hpp"
#include "reference/pre.hpp"
#include "reference/quantize.hpp"
#include "reference/scale_grid.hpp"

namespace mxjit::reference {
namespace {

// One token at one of its experts.
struct Route {
  std::int64_t token;
  float weight;
};

std::int64_t expert_id(const HostTensor& ids, std::int64_t index) {
  return ids.dtype == DType::i64 ? read_as<std::int64_t>(ids, index) : read_as<std::int32_t>(ids, index);
}

// Routes of the local experts, in the order of the tokens. Ids of other experts, or of none, are skipped.
std::vector<std::vector<Route>> routes_of(const problem::Moe& op, const TensorMap& inputs) {
  std::vector<std::vector<Route>> routes(static_cast<std::size_t>(op.local_count));
  for (std::int64_t t = 0; t < op.tokens.max; ++t) {
    for (std::int64_t j = 0; j < op.top_k; ++j) {
      const std::int64_t index = t * op.top_k + j;
      const std::int64_t expert = expert_id(inputs.at("topk_ids"), index);
      if (expert < op.first_local || expert >= op.first_local + op.local_count) continue;
      routes[static_cast<std::size_t>(expert - op.first_local)].push_back(
          {t, read_as<float>(inputs.at("topk_weights"), index)});
    }
  }
  return routes;
}

// The values as a GEMM sees them after a quantization by the recipe.
Matrix quantize_and_decode(const problem::Recipe& recipe, const Matrix& values) {
  HostTensor single = make_tensor(DType::fp32, {values.rows, values.cols});
  for (std::size_t i = 0; i < values.values.size(); ++i) {
    write_as(single, static_cast<std::int64_t>(i), static_cast<float>(values.values[i]));
  }
  problem::Recipe plain = recipe;  // the layout of the scales changes no value
  plain.scale_layout = ScaleLayout::plain;
  const bool by_row = recipe.block.kind == Block::Kind::row;
  const std::int64_t blocks = by_row ? 1 : ceil_div(values.cols, recipe.block.cols);
  HostTensor q = make_tensor(recipe.format, {values.rows, values.cols});
  HostTensor s =
      make_tensor(recipe.scaling == Scaling::mx ? DType::e8m0 : DType::fp32, {values.rows, blocks});
  quantize_axis(plain, {single, 1, values.rows, values.cols, false}, std::nullopt, false, q, s);

  problem::Operand operand;
  operand.tensor.shape = {values.rows, values.cols};
  operand.scaling.emplace();
  operand.scaling->kind = recipe.scaling;
  operand.scaling->block = recipe.block;
  OperandData data(operand, q, &s, std::nullopt, {});
  std::vector<std::int64_t> rows(static_cast<std::size_t>(values.rows));
  for (std::size_t r = 0; r < rows.size(); ++r) rows[r] = static_cast<std::int64_t>(r);
  return data.decode_rows(0, rows, 0, values.cols, 0);
}

// The experts' weights as an operand of (experts, rows, cols).
problem::Operand weights_operand(const problem::Moe& op, std::int64_t rows, std::int64_t cols) {
  problem::Operand operand;
  operand.tensor.dtype = op.weights.format;
  operand.tensor.shape = {op.local_count, rows, cols};
  operand.scaling.emplace();
  operand.scaling->kind = op.weights.scaling;
  operand.scaling->block = op.weights.block;
  operand.scaling->layout = op.weights.scale_layout;
  return operand;
}

void add_bias(Matrix& sums, const TensorMap& inputs, const std::string& name, std::int64_t expert) {
  const auto bias = inputs.find(name);
  if (bias == inputs.end()) return;
  for (std::int64_t r = 0; r < sums.rows; ++r) {
    for (std::int64_t c = 0; c < sums.cols; ++c) {
      sums.row(r)[c] += element(bias->second.dtype, bias->second.bytes.data(), expert * sums.cols + c);
    }
  }
}

Matrix activate(const problem::Swiglu& parameters, const Matrix& gate_up) {
  Matrix out(gate_up.rows, gate_up.cols / 2);
  for (std::int64_t r = 0; r < out.rows; ++r) {
    for (std::int64_t c = 0; c < out.cols; ++c) {
      out.row(r)[c] = swiglu(parameters, gate_up.row(r)[gate_column(parameters, c)],
                             gate_up.row(r)[up_column(parameters, c, out.cols)]);
    }
  }
  return out;
}

}  // namespace

void moe(const problem::Moe& op, const TensorMap& inputs, TensorMap& outputs, Accumulate accumulate) {
  if (op.activations.block.kind == Block::Kind::tensor) {
    throw Error(ErrorCode::unsupported, "the CPU does not execute op moe with one scale for all activations",
                "/activations/block");
  }
  const std::int64_t hidden = op.hidden.max;
  const std::int64_t inner = op.intermediate.max;
  const problem::Operand w13_operand = weights_operand(op, 2 * inner, hidden);
  const problem::Operand w2_operand = weights_operand(op, hidden, inner);
  OperandData w13(w13_operand, inputs.at("w13"), &inputs.at("w13_scale"), std::nullopt, {});
  OperandData w2(w2_operand, inputs.at("w2"), &inputs.at("w2_scale"), std::nullopt, {});
  const HostTensor& x = inputs.at("x");
  Matrix y(op.tokens.max, hidden);

  const std::vector<std::vector<Route>> routes = routes_of(op, inputs);
  for (std::int64_t e = 0; e < op.local_count; ++e) {
    const std::vector<Route>& local = routes[static_cast<std::size_t>(e)];
    if (local.empty()) continue;
    Matrix tokens(static_cast<std::int64_t>(local.size()), hidden);
    for (std::int64_t i = 0; i < tokens.rows; ++i) {
      const Route& route = local[static_cast<std::size_t>(i)];
      for (std::int64_t c = 0; c < hidden; ++c) {
        const float value = element(x.dtype, x.bytes.data(), route.token * hidden + c);
        tokens.row(i)[c] = op.weight_on_input ? value * route.weight : value;
      }
    }
    Matrix gate_up = multiply(quantize_and_decode(op.activations, tokens),
                              w13.decode_transposed(e, 0, hidden, 0), accumulate);
    add_bias(gate_up, inputs, "w13_bias", e);
    const Matrix activated = activate(op.activation, gate_up);
    Matrix down = multiply(quantize_and_decode(op.activations, activated),
                           w2.decode_transposed(e, 0, inner, 0), accumulate);
    add_bias(down, inputs, "w2_bias", e);
    for (std::int64_t i = 0; i < down.rows; ++i) {
      const Route& route = local[static_cast<std::size_t>(i)];
      const double weight = op.weight_on_input ? 1.0 : route.weight;
      for (std::int64_t c = 0; c < hidden; ++c) y.row(route.token)[c] += weight * down.row(i)[c];
    }
  }
  for (std::size_t i = 0; i < y.values.size(); ++i) {
    store(op.d, outputs.at("y").bytes.data(), static_cast<std::int64_t>(i), y.values[i]);
  }
}

}  // namespace mxjit::reference
