#include "reference/pre.hpp"

#include <algorithm>
#include <cmath>

#include "reference/matrix.hpp"
#include "reference/parallel.hpp"

namespace mxjit::reference {
namespace {

// Each takes one loaded row of the input and fills one row of the output.
struct FillRow {
  const TensorMap& inputs;
  const float* in;
  std::int64_t cols;  // of the output
  HostTensor& out;
  std::int64_t first;  // element of `out`

  void operator()(std::monostate) const {
    for (std::int64_t c = 0; c < cols; ++c) put(c, in[c]);
  }
  void operator()(const problem::Swiglu& p) const {
    for (std::int64_t c = 0; c < cols; ++c)
      put(c, swiglu(p, in[gate_column(p, c)], in[up_column(p, c, cols)]));
  }
  void operator()(const problem::RmsNorm& p) const {
    const HostTensor& weight = inputs.at("weight");
    double squares = 0.0;
    for (std::int64_t c = 0; c < cols; ++c) squares += static_cast<double>(in[c]) * in[c];
    const double inverse = 1.0 / std::sqrt(squares / static_cast<double>(cols) + p.eps);
    for (std::int64_t c = 0; c < cols; ++c) {
      put(c, in[c] * inverse * element(weight.dtype, weight.bytes.data(), c));
    }
  }
  void put(std::int64_t c, double value) const { store(out.dtype, out.bytes.data(), first + c, value); }
};

}  // namespace

double swiglu(const problem::Swiglu& parameters, double gate, double up) {
  if (parameters.limit) {
    // Comparisons that are false for NaN, so that it stays.
    if (gate > *parameters.limit) gate = *parameters.limit;
    if (up > *parameters.limit) up = *parameters.limit;
    if (up < -*parameters.limit) up = -*parameters.limit;
    up += 1.0;
  }
  return gate / (1.0 + std::exp(-parameters.alpha * gate)) * up;
}

HostTensor apply_pre(const problem::Quantize& op, const TensorMap& inputs) {
  const std::int64_t experts = leading_count(op.input.shape);
  const std::int64_t rows = extent(op.input.shape, 1);
  const std::int64_t in_cols = extent(op.input.shape, 0);
  const std::int64_t cols = std::holds_alternative<problem::Swiglu>(op.pre) ? in_cols / 2 : in_cols;
  const bool transposed = op.input_layout == problem::InputLayout::col;

  std::vector<std::int64_t> shape{experts, rows, cols};
  if (op.input.shape.size() == 2) shape.erase(shape.begin());
  HostTensor out = make_tensor(DType::bf16, shape);
  for (std::int64_t e = 0; e < experts; ++e) {
    const MatrixView x = matrix_of(inputs.at("x"), e, rows, in_cols, transposed);
    parallel_for(rows, [&](std::int64_t r) {
      std::vector<float> row(static_cast<std::size_t>(in_cols));
      x.load_rows(r, 1, row.data());
      std::visit(FillRow{inputs, row.data(), cols, out, (e * rows + r) * cols}, op.pre);
    });
  }
  return out;
}

}  // namespace mxjit::reference
