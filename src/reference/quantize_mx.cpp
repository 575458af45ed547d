// MX quantization: one E8M0 code a block.
#include <algorithm>
#include <bit>

#include "reference/fp8.hpp"
#include "reference/layout.hpp"
#include "reference/matrix.hpp"
#include "reference/parallel.hpp"
#include "reference/quantize.hpp"
#include "reference/scale.hpp"

namespace mxjit::reference {
namespace {

// The largest magnitude of a block. Bit patterns of magnitudes sort as the magnitudes do, with infinity and
// then NaN above all numbers, so that one of them in the block decides.
float block_amax(const float* block, std::int64_t rows, std::int64_t cols, std::int64_t pitch) {
  std::uint32_t largest = 0;
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < cols; ++c) {
      largest = std::max(largest, std::bit_cast<std::uint32_t>(block[r * pitch + c]) & 0x7FFFFFFFU);
    }
  }
  return std::bit_cast<float>(largest);
}

void encode_block(const Fp8Format& format, std::uint8_t code, const float* block, std::int64_t rows,
                  std::int64_t cols, std::int64_t pitch, std::uint8_t* q) {
  const float factor = mx_factor(code);
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < cols; ++c) {
      q[r * pitch + c] = code == scale_nan ? fp8_nan : encode_fp8(format, block[r * pitch + c] * factor);
    }
  }
}

// One matrix, blocks along its rows. q has the matrix's shape, codes one entry a block.
void quantize_matrix(const problem::Recipe& recipe, const MatrixView& x, std::uint8_t* q,
                     std::uint8_t* codes) {
  const Fp8Format& format = fp8_format(recipe.format);
  const std::int64_t tall = recipe.block.rows;
  const std::int64_t wide = recipe.block.cols;
  const std::int64_t blocks_per_row = ceil_div(x.cols, wide);
  constexpr std::int64_t strip = 128;  // rows at a time; a multiple of every block's rows
  parallel_for(ceil_div(x.rows, strip), [&](std::int64_t s) {
    const std::int64_t first = s * strip;
    const std::int64_t count = std::min(strip, x.rows - first);
    std::vector<float> values(static_cast<std::size_t>(count * x.cols));
    x.load_rows(first, count, values.data());
    for (std::int64_t r = 0; r < count; r += tall) {
      const std::int64_t rows = std::min(tall, count - r);
      for (std::int64_t b = 0; b < blocks_per_row; ++b) {
        const std::int64_t c = b * wide;
        const std::int64_t cols = std::min(wide, x.cols - c);
        const float* block = values.data() + r * x.cols + c;
        const std::uint8_t code =
            mx_code(block_amax(block, rows, cols, x.cols), recipe.rounding, recipe.format);
        codes[(first + r) / tall * blocks_per_row + b] = code;
        encode_block(format, code, block, rows, cols, x.cols, q + (first + r) * x.cols + c);
      }
    }
  });
}

// Codes of tall blocks, once for each of their rows.
std::vector<std::uint8_t> one_code_a_row(const std::vector<std::uint8_t>& codes, std::int64_t experts,
                                         std::int64_t rows, std::int64_t cols, std::int64_t tall) {
  std::vector<std::uint8_t> out;
  out.reserve(static_cast<std::size_t>(experts * rows * cols));
  for (std::int64_t e = 0; e < experts; ++e) {
    for (std::int64_t r = 0; r < rows; ++r) {
      const auto from = codes.begin() + (e * ceil_div(rows, tall) + r / tall) * cols;
      out.insert(out.end(), from, from + cols);
    }
  }
  return out;
}

}  // namespace

void quantize_mx(const problem::Recipe& recipe, const Source& source, const std::optional<RowGroups>& groups,
                 bool col, HostTensor& q, HostTensor& s) {
  const std::int64_t rows = col ? source.cols : source.rows;
  const std::int64_t cols = col ? source.rows : source.cols;
  const std::int64_t code_rows = ceil_div(rows, recipe.block.rows);
  const std::int64_t code_cols = ceil_div(cols, recipe.block.cols);
  std::vector<std::uint8_t> codes(static_cast<std::size_t>(source.experts * code_rows * code_cols));
  for (std::int64_t e = 0; e < source.experts; ++e) {
    MatrixView x = matrix_of(source.tensor, e, source.rows, source.cols, source.transposed);
    if (col) x = x.transpose();
    quantize_matrix(recipe, x, q.bytes.data() + e * rows * cols, codes.data() + e * code_rows * code_cols);
  }

  if (recipe.scale_layout == ScaleLayout::plain) {
    s.bytes = codes;
    return;
  }
  codes = one_code_a_row(codes, source.experts, rows, code_cols, recipe.block.rows);
  const auto put = [&](std::int64_t index, std::int64_t byte) {
    s.bytes[static_cast<std::size_t>(byte)] = codes[static_cast<std::size_t>(index)];
  };
  if (!groups) {
    place_per_expert(source.experts, rows, code_cols, put);
  } else if (col) {
    std::vector<std::int64_t> code_ends = groups->ends;
    for (std::int64_t& end : code_ends) end /= recipe.block.cols;
    place_k_groups(code_ends, rows, code_cols, put);
  } else if (groups->alignment == 128) {
    place_dense(rows, code_cols, put);  // every group starts on a tile, so that one matrix serves them all
  } else {
    place_m_groups(groups->ends, code_cols, put);
  }
}

}  // namespace mxjit::reference
