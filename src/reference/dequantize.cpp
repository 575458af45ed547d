// Op "dequantize": fp32(q * scale), rounded to the output's dtype. Elements that no group owns become zero
// where their scale has no place (m_groups, k_groups, one scale a group).
#include "reference/fp8.hpp"
#include "reference/matrix.hpp"
#include "reference/ops.hpp"
#include "reference/parallel.hpp"
#include "reference/scale_grid.hpp"

namespace mxjit::reference {
namespace {

// The part of a matrix that one grid covers: columns [first, end), or rows, of the matrix as it was
// quantized.
struct Part {
  ScaleGrid scales;
  std::int64_t rows;
  std::int64_t first_col;
  std::int64_t end_col;
};

std::vector<Part> mx_parts(const problem::Dequantize& op, const HostTensor& s, std::int64_t e,
                           std::int64_t rows, std::int64_t cols, const std::vector<std::int64_t>& ends) {
  if (op.scale_layout == ScaleLayout::plain)
    return {{mx_plain_grid(s, e, rows, cols, op.block), rows, 0, cols}};
  const std::int64_t wide = op.block.cols;
  const std::int64_t owned = ends.empty() ? 0 : ends.back();
  if (!op.groups || (!op.axis_col && op.groups->alignment == 128)) {
    return {{mx_blocked_grid(s, e, rows, cols, wide, CodePlacement::dense, {}), rows, 0, cols}};
  }
  if (op.axis_col)
    return {{mx_blocked_grid(s, 0, rows, cols, wide, CodePlacement::k_groups, ends), rows, 0, owned}};
  return {{mx_blocked_grid(s, 0, rows, cols, wide, CodePlacement::m_groups, ends), owned, 0, cols}};
}

std::vector<Part> fp32_parts(const problem::Dequantize& op, const HostTensor& s, std::int64_t e,
                             std::int64_t rows, std::int64_t cols, const std::vector<std::int64_t>& ends) {
  switch (op.block.kind) {
    case Block::Kind::tensor:
      return {{fp32_tensor_grid(s, 0), rows, 0, cols}};
    case Block::Kind::extents:
      return {{fp32_block_grid(s, e, rows, cols, op.block, op.scale_layout), rows, 0, cols}};
    case Block::Kind::k:  // of GEMM operands alone
    case Block::Kind::row:
      break;
  }
  if (!op.groups || !op.axis_col) return {{fp32_row_grid(s, e * rows, rows), rows, 0, cols}};
  std::vector<Part> parts;
  std::int64_t first = 0;
  for (std::size_t g = 0; g < ends.size(); ++g) {
    parts.push_back({fp32_row_grid(s, static_cast<std::int64_t>(g) * rows, rows), rows, first, ends[g]});
    first = ends[g];
  }
  return parts;
}

}  // namespace

void dequantize(const problem::Dequantize& op, const TensorMap& inputs, TensorMap& outputs) {
  const HostTensor& q = inputs.at("q");
  const HostTensor& s = inputs.at("s");
  HostTensor& x = outputs.at("x");
  const std::int64_t experts = leading_count(op.q.shape);
  const std::int64_t m = extent(op.q.shape, 1);
  const std::int64_t n = extent(op.q.shape, 0);
  const std::int64_t rows = op.axis_col ? n : m;  // of the matrix as it was quantized
  const std::int64_t cols = op.axis_col ? m : n;
  std::vector<std::int64_t> ends;
  if (op.groups) ends = read_offsets(inputs.at("offsets"), m, op.groups->alignment);

  for (std::int64_t e = 0; e < experts; ++e) {
    const MatrixView codes = matrix_of(q, e, rows, cols, false);
    std::uint8_t* out = x.bytes.data() + static_cast<std::size_t>(e * m * n) * size_of(op.output);
    const auto parts_of = op.scaling == Scaling::mx ? mx_parts : fp32_parts;
    for (const Part& part : parts_of(op, s, e, rows, cols, ends)) {
      parallel_for(part.rows, [&](std::int64_t r) {
        for (std::int64_t c = part.first_col; c < part.end_col; ++c) {
          const float value = codes.at(r, c) * part.scales.at(r, c);
          store(op.output, out, op.axis_col ? c * n + r : r * n + c, value);
        }
      });
    }
  }
}

}  // namespace mxjit::reference
