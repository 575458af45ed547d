// The scales of one quantized matrix, whatever their kind and layout, as a function of the element.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "mxjit/types.hpp"
#include "safetensors/host_tensor.hpp"

namespace mxjit::reference {

/// A scale stands for `tall` rows and `wide` columns; scales of neighbouring blocks lie a stride apart.
struct ScaleGrid {
  std::vector<float> values;
  std::int64_t tall = 1;
  std::int64_t wide = 1;
  std::int64_t row_stride = 0;
  std::int64_t col_stride = 0;

  float at(std::int64_t r, std::int64_t c) const {
    return values[static_cast<std::size_t>(r / tall * row_stride + c / wide * col_stride)];
  }
};

/// Where the blocked codes of a matrix lie.
enum class CodePlacement : std::uint8_t { dense, m_groups, k_groups };

/// Plain MX codes of matrix `index` out of several, rows x cols elements each.
ScaleGrid mx_plain_grid(const HostTensor& s, std::int64_t index, std::int64_t rows, std::int64_t cols,
                        const Block& block);
/// Blocked MX codes (one a row and `wide` columns). `ends`: of the groups, in rows for m_groups and in
/// elements of the contraction for k_groups. Elements that no group owns get scale 0.
ScaleGrid mx_blocked_grid(const HostTensor& s, std::int64_t index, std::int64_t rows, std::int64_t cols,
                          std::int64_t wide, CodePlacement placement, std::span<const std::int64_t> ends);
/// fp32 scales, one a block of block.rows x block.cols; mn_major: the transposed matrix, inner extent padded
/// to 4.
ScaleGrid fp32_block_grid(const HostTensor& s, std::int64_t index, std::int64_t rows, std::int64_t cols,
                          const Block& block, ScaleLayout layout);
/// fp32 scales [first, first + count): one for everything (count 1), one a row, or one a column.
ScaleGrid fp32_tensor_grid(const HostTensor& s, std::int64_t index);
ScaleGrid fp32_row_grid(const HostTensor& s, std::int64_t first, std::int64_t rows);
ScaleGrid fp32_col_grid(const HostTensor& s, std::int64_t first, std::int64_t cols);

}  // namespace mxjit::reference
