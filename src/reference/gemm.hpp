// The parts of op "gemm": decoded operands, their products, and what becomes of the sums.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "problem/problem.hpp"
#include "reference/reference.hpp"
#include "reference/scale_grid.hpp"
#include "safetensors/host_tensor.hpp"

namespace mxjit::reference {

struct Matrix {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::vector<double> values;  // row-major

  Matrix(std::int64_t row_count, std::int64_t col_count)
      : rows(row_count), cols(col_count), values(static_cast<std::size_t>(row_count * col_count)) {}
  double* row(std::int64_t r) { return values.data() + r * cols; }
  const double* row(std::int64_t r) const { return values.data() + r * cols; }
};

/// a (rows, K) times bt (K, cols), every sum in the order of K.
Matrix multiply(const Matrix& a, const Matrix& bt, Accumulate accumulate);

/// One operand as the problem stores it, and the decoder of its parts.
class OperandData {
 public:
  /// `groups` are those that cut this operand: m (its rows) or k (its contraction), with their ends.
  OperandData(const problem::Operand& declared, const HostTensor& codes, const HostTensor* scales,
              std::optional<problem::GemmGroupKind> groups, std::span<const std::int64_t> ends)
      : declared_(declared), codes_(codes), scales_(scales), groups_(groups), ends_(ends) {}

  /// Rows `rows` of matrix `index`, elements [first, end) of the contraction, decoded. `group` picks the row
  /// scales of a "k" group. MX values are decoded in fp32, so that what overflows there is infinity.
  Matrix decode_rows(std::int64_t index, std::span<const std::int64_t> rows, std::int64_t first,
                     std::int64_t end, std::int64_t group);
  /// All rows, transposed to (contraction, rows).
  Matrix decode_transposed(std::int64_t index, std::int64_t first, std::int64_t end, std::int64_t group);

 private:
  const ScaleGrid& grid(std::int64_t index, std::int64_t group);
  ScaleGrid mx_grid(std::int64_t index) const;
  ScaleGrid fp32_grid(std::int64_t index, std::int64_t group) const;
  std::int64_t rows() const;
  std::int64_t contraction() const;

  const problem::Operand& declared_;
  const HostTensor& codes_;
  const HostTensor* scales_;  // null where the operand has none
  std::optional<problem::GemmGroupKind> groups_;
  std::span<const std::int64_t> ends_;
  ScaleGrid grid_;  // of grid_key_: groups of rows share one
  std::optional<std::pair<std::int64_t, std::int64_t>> grid_key_;
};

/// One product out of which D is made.
struct Product {
  std::int64_t a_index = 0;
  std::vector<std::int64_t> rows;  // of A
  std::int64_t b_index = 0;
  std::int64_t first = 0;  // of the contraction
  std::int64_t end = 0;
  std::int64_t group = 0;  // 0 without groups
  std::int64_t first_d_row =
      0;  // row r of A becomes row first_d_row + r of D, counted through all its matrices
};
/// Ends of "m" and "k" groups, empty for the others. Throws Error(invalid_argument) naming offsets.
std::vector<std::int64_t> group_ends(const problem::Gemm& op, const TensorMap& inputs);
/// The products of a problem, group by group or batch by batch. Throws Error(invalid_argument) for counts or
/// ids that are out of range.
std::vector<Product> list_products(const problem::Gemm& op, const TensorMap& inputs,
                                   const std::vector<std::int64_t>& ends);

/// Turns sums into rows of D: alpha, bias, beta * C, the epilogue.
class Finisher {
 public:
  Finisher(const problem::Gemm& op, const TensorMap& inputs, TensorMap& outputs);
  /// The sums of D's row `row`, N of them, owned by `group`.
  void row(std::int64_t row, std::int64_t group, const double* sums);
  /// Stores d, d_scales and amax. `ends` of groups along M or K, if any.
  void finish(const std::vector<std::int64_t>& ends);

 private:
  const problem::Gemm& op_;
  const TensorMap& inputs_;
  TensorMap& outputs_;
  std::int64_t n_;  // columns of the product
  Matrix high_;     // D before it is rounded, all its matrices; rows that no group owns stay zero
};

}  // namespace mxjit::reference
