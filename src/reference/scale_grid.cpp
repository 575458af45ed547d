#include "reference/scale_grid.hpp"

#include "reference/fp8.hpp"
#include "reference/layout.hpp"
#include "reference/matrix.hpp"

namespace mxjit::reference {
namespace {

constexpr std::int64_t everything = std::int64_t{1} << 62;  // a block that no matrix outgrows

std::vector<float> fp32_values(const HostTensor& s, std::int64_t first, std::int64_t count) {
  std::vector<float> values;
  values.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) values.push_back(read_as<float>(s, first + i));
  return values;
}

}  // namespace

ScaleGrid mx_plain_grid(const HostTensor& s, std::int64_t index, std::int64_t rows, std::int64_t cols,
                        const Block& block) {
  const std::int64_t code_rows = ceil_div(rows, block.rows);
  const std::int64_t code_cols = ceil_div(cols, block.cols);
  ScaleGrid grid{{}, block.rows, block.cols, code_cols, 1};
  const std::int64_t first = index * code_rows * code_cols;
  for (std::int64_t i = 0; i < code_rows * code_cols; ++i) {
    grid.values.push_back(decode_e8m0(s.bytes[static_cast<std::size_t>(first + i)]));
  }
  return grid;
}

ScaleGrid mx_blocked_grid(const HostTensor& s, std::int64_t index, std::int64_t rows, std::int64_t cols,
                          std::int64_t wide, CodePlacement placement, std::span<const std::int64_t> ends) {
  const std::int64_t code_cols = ceil_div(cols, wide);
  ScaleGrid grid{std::vector<float>(static_cast<std::size_t>(rows * code_cols), 0.0F), 1, wide, code_cols, 1};
  const std::int64_t first = index * blocked_bytes(rows, code_cols);
  const auto take = [&](std::int64_t at, std::int64_t byte) {
    grid.values[static_cast<std::size_t>(at)] = decode_e8m0(s.bytes[static_cast<std::size_t>(first + byte)]);
  };
  if (placement == CodePlacement::dense) {
    place_dense(rows, code_cols, take);
  } else if (placement == CodePlacement::m_groups) {
    place_m_groups(ends, code_cols, take);
  } else {
    std::vector<std::int64_t> code_ends(ends.begin(), ends.end());
    for (std::int64_t& end : code_ends) end = ceil_div(end, wide);
    place_k_groups(code_ends, rows, code_cols, take);
  }
  return grid;
}

ScaleGrid fp32_block_grid(const HostTensor& s, std::int64_t index, std::int64_t rows, std::int64_t cols,
                          const Block& block, ScaleLayout layout) {
  const std::int64_t scale_rows = ceil_div(rows, block.rows);
  const std::int64_t scale_cols = ceil_div(cols, block.cols);
  if (layout == ScaleLayout::mn_major) {
    const std::int64_t pitch = ceil_to(scale_rows, 4);
    return {fp32_values(s, index * scale_cols * pitch, scale_cols * pitch), block.rows, block.cols, 1, pitch};
  }
  const std::int64_t count = scale_rows * scale_cols;
  return {fp32_values(s, index * count, count), block.rows, block.cols, scale_cols, 1};
}

ScaleGrid fp32_tensor_grid(const HostTensor& s, std::int64_t index) {
  return {fp32_values(s, index, 1), everything, everything, 0, 0};
}

ScaleGrid fp32_row_grid(const HostTensor& s, std::int64_t first, std::int64_t rows) {
  return {fp32_values(s, first, rows), 1, everything, 1, 0};
}

ScaleGrid fp32_col_grid(const HostTensor& s, std::int64_t first, std::int64_t cols) {
  return {fp32_values(s, first, cols), everything, 1, 0, 1};
}

}  // namespace mxjit::reference
