// Op "gemm": D = alpha * decode(A) * decode(B)^T + beta * C + bias, group by group.
#include "reference/gemm.hpp"

#include "reference/matrix.hpp"
#include "reference/ops.hpp"
#include "reference/parallel.hpp"

namespace mxjit::reference {
namespace {

using problem::GemmGroupKind;

// The inner loop runs along a row of bt, so that each sum still adds up in the order of K.
template <typename Sum>
void multiply_row(const double* a, const Matrix& bt, double* out) {
  std::vector<Sum> sums(static_cast<std::size_t>(bt.cols));
  for (std::int64_t k = 0; k < bt.rows; ++k) {
    const auto factor = static_cast<Sum>(a[k]);
    const double* b = bt.row(k);
    for (std::int64_t c = 0; c < bt.cols; ++c)
      sums[static_cast<std::size_t>(c)] += factor * static_cast<Sum>(b[c]);
  }
  for (std::int64_t c = 0; c < bt.cols; ++c) out[c] = static_cast<double>(sums[static_cast<std::size_t>(c)]);
}

OperandData operand(const problem::Operand& declared, const TensorMap& inputs, const std::string& name,
                    std::optional<GemmGroupKind> groups, const std::vector<std::int64_t>& ends) {
  const HostTensor* scales = declared.scaling ? &inputs.at(name + "_scale") : nullptr;
  return {declared, inputs.at(name), scales, groups, ends};
}

}  // namespace

Matrix multiply(const Matrix& a, const Matrix& bt, Accumulate accumulate) {
  Matrix out(a.rows, bt.cols);
  parallel_for(a.rows, [&](std::int64_t r) {
    if (accumulate == Accumulate::fp32) {
      multiply_row<float>(a.row(r), bt, out.row(r));
    } else {
      multiply_row<double>(a.row(r), bt, out.row(r));
    }
  });
  return out;
}

void gemm(const problem::Gemm& op, const TensorMap& inputs, TensorMap& outputs, Accumulate accumulate) {
  const std::vector<std::int64_t> ends = group_ends(op, inputs);
  // Groups of rows cut A alone; groups of the contraction cut both.
  const bool along_m = op.groups && op.groups->kind == GemmGroupKind::m;
  const bool along_k = op.groups && op.groups->kind == GemmGroupKind::k;
  const std::optional<GemmGroupKind> of_b = along_k ? std::optional(GemmGroupKind::k) : std::nullopt;
  OperandData a = operand(op.a, inputs, "a", along_m ? GemmGroupKind::m : of_b, ends);
  OperandData b = operand(op.b, inputs, "b", of_b, ends);

  Finisher finisher(op, inputs, outputs);
  for (const Product& product : list_products(op, inputs, ends)) {
    if (product.rows.empty()) continue;
    const Matrix a_rows =
        a.decode_rows(product.a_index, product.rows, product.first, product.end, product.group);
    const Matrix bt = b.decode_transposed(product.b_index, product.first, product.end, product.group);
    const Matrix sums = multiply(a_rows, bt, accumulate);
    for (std::int64_t i = 0; i < sums.rows; ++i) {
      finisher.row(product.first_d_row + product.rows[static_cast<std::size_t>(i)], product.group,
                   sums.row(i));
    }
  }
  finisher.finish(ends);
}

}  // namespace mxjit::reference
