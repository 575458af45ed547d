// Decoding the operands of a GEMM.
#include <numeric>

#include "reference/gemm.hpp"
#include "reference/layout.hpp"
#include "reference/matrix.hpp"
#include "reference/parallel.hpp"

namespace mxjit::reference {

ScaleGrid OperandData::mx_grid(std::int64_t index) const {
  const problem::OperandScaling& scaling = *declared_.scaling;
  if (scaling.layout == ScaleLayout::plain) {
    return mx_plain_grid(*scales_, index, rows(), contraction(), scaling.block);
  }
  const std::int64_t wide = scaling.block.cols;
  CodePlacement placement = CodePlacement::dense;
  if (groups_ == problem::GemmGroupKind::k) placement = CodePlacement::k_groups;
  // Groups of rows that are multiples of 128 may bring the dense matrix, which has no slack.
  const bool dense = scales_->elements() == blocked_bytes(rows(), ceil_div(contraction(), wide));
  if (groups_ == problem::GemmGroupKind::m && !dense) placement = CodePlacement::m_groups;
  return mx_blocked_grid(*scales_, index, rows(), contraction(), wide, placement, ends_);
}

ScaleGrid OperandData::fp32_grid(std::int64_t index, std::int64_t group) const {
  const problem::OperandScaling& scaling = *declared_.scaling;
  switch (scaling.block.kind) {
    case Block::Kind::tensor:
      return fp32_tensor_grid(*scales_, 0);
    case Block::Kind::row:
      // "k" groups have one scale a row and group, everything else one a row and matrix.
      return fp32_row_grid(*scales_, (groups_ == problem::GemmGroupKind::k ? group : index) * rows(), rows());
    case Block::Kind::k:
      return fp32_col_grid(*scales_, index * contraction(), contraction());
    case Block::Kind::extents:
      break;
  }
  return fp32_block_grid(*scales_, index, rows(), contraction(), scaling.block, scaling.layout);
}

const ScaleGrid& OperandData::grid(std::int64_t index, std::int64_t group) {
  const bool per_group =
      declared_.scaling->block.kind == Block::Kind::row && groups_ == problem::GemmGroupKind::k;
  const std::pair key{index, per_group ? group : 0};
  if (grid_key_ != key) {
    grid_ = declared_.scaling->kind == Scaling::mx ? mx_grid(index) : fp32_grid(index, group);
    grid_key_ = key;
  }
  return grid_;
}

std::int64_t OperandData::rows() const { return extent(declared_.tensor.shape, 1); }
std::int64_t OperandData::contraction() const { return extent(declared_.tensor.shape, 0); }

Matrix OperandData::decode_rows(std::int64_t index, std::span<const std::int64_t> rows_wanted,
                                std::int64_t first, std::int64_t end, std::int64_t group) {
  const MatrixView codes = matrix_of(codes_, index, rows(), contraction(), declared_.mn_major);
  const ScaleGrid* scales = declared_.scaling ? &grid(index, group) : nullptr;
  const bool mx = scales != nullptr && declared_.scaling->kind == Scaling::mx;
  Matrix out(static_cast<std::int64_t>(rows_wanted.size()), end - first);
  parallel_for(out.rows, [&](std::int64_t i) {
    const std::int64_t r = rows_wanted[static_cast<std::size_t>(i)];
    double* values = out.row(i);
    for (std::int64_t k = first; k < end; ++k) {
      const float code = codes.at(r, k);
      double& value = values[k - first];
      if (scales == nullptr) {
        value = code;
      } else if (mx) {
        value = code * scales->at(r, k);
      } else {
        value = static_cast<double>(code) * scales->at(r, k);
      }
    }
  });
  return out;
}

Matrix OperandData::decode_transposed(std::int64_t index, std::int64_t first, std::int64_t end,
                                      std::int64_t group) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(rows()));
  std::iota(all.begin(), all.end(), std::int64_t{0});
  const Matrix decoded = decode_rows(index, all, first, end, group);
  Matrix out(decoded.cols, decoded.rows);
  for (std::int64_t r = 0; r < decoded.rows; ++r) {
    for (std::int64_t k = 0; k < decoded.cols; ++k) out.row(k)[r] = decoded.row(r)[k];
  }
  return out;
}

}  // namespace mxjit::reference
