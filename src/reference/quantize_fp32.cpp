// Quantization with float scales: one a block, a row (inside a group), or the tensor.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "reference/fp8.hpp"
#include "reference/layout.hpp"
#include "reference/matrix.hpp"
#include "reference/parallel.hpp"
#include "reference/quantize.hpp"
#include "reference/scale.hpp"

namespace mxjit::reference {
namespace {

// A rectangle of loaded values: rows `pitch` elements apart, as in the matrix it is a part of.
struct Rectangle {
  std::int64_t rows;
  std::int64_t cols;
  std::int64_t pitch;
};

// NaN, where there is one.
float largest_magnitude(const float* x, const Rectangle& part) {
  std::uint32_t largest = 0;
  for (std::int64_t r = 0; r < part.rows; ++r) {
    for (std::int64_t c = 0; c < part.cols; ++c) {
      largest = std::max(largest, std::bit_cast<std::uint32_t>(x[r * part.pitch + c]) & 0x7FFFFFFFU);
    }
  }
  return std::bit_cast<float>(largest);
}

// What the values are multiplied by.
float factor_of(const problem::Recipe& recipe, float amax) {
  if (recipe.amax_cap && !std::isnan(amax)) amax = std::min(amax, static_cast<float>(*recipe.amax_cap));
  return fp32_factor(amax, recipe.rounding, recipe.format);
}

// What a GEMM multiplies by.
float scale_of(float factor) {
  return std::isnan(factor) ? std::bit_cast<float>(0x7FFFFFFFU) : 1.0F / factor;
}

void encode(const problem::Recipe& recipe, float factor, const float* x, const Rectangle& part,
            std::uint8_t* q) {
  const Fp8Format& format = fp8_format(recipe.format);
  for (std::int64_t r = 0; r < part.rows; ++r) {
    for (std::int64_t c = 0; c < part.cols; ++c) {
      q[r * part.pitch + c] = encode_fp8(format, x[r * part.pitch + c] * factor);
    }
  }
}

float encode_with_own_scale(const problem::Recipe& recipe, const float* x, const Rectangle& part,
                            std::uint8_t* q) {
  const float factor = factor_of(recipe, largest_magnitude(x, part));
  encode(recipe, factor, x, part, q);
  return scale_of(factor);
}

// Calls work(first row, rows, their values) for strips of a matrix; a strip holds whole blocks.
template <typename Work>
void for_each_strip(const MatrixView& x, Work work) {
  constexpr std::int64_t strip = 128;
  parallel_for(ceil_div(x.rows, strip), [&](std::int64_t s) {
    const std::int64_t first = s * strip;
    const std::int64_t count = std::min(strip, x.rows - first);
    std::vector<float> values(static_cast<std::size_t>(count * x.cols));
    x.load_rows(first, count, values.data());
    work(first, count, values.data());
  });
}

void quantize_blocks(const problem::Recipe& recipe, const MatrixView& x, std::int64_t index, std::uint8_t* q,
                     HostTensor& s) {
  const std::int64_t tall = recipe.block.rows;
  const std::int64_t wide = recipe.block.cols;
  const std::int64_t scale_rows = ceil_div(x.rows, tall);
  const std::int64_t scale_cols = ceil_div(x.cols, wide);
  const bool mn_major = recipe.scale_layout == ScaleLayout::mn_major;
  const std::int64_t pitch = mn_major ? ceil_to(scale_rows, 4) : scale_cols;
  const std::int64_t base = index * pitch * (mn_major ? scale_cols : scale_rows);
  for_each_strip(x, [&](std::int64_t first, std::int64_t count, const float* values) {
    for (std::int64_t r = 0; r < count; r += tall) {
      for (std::int64_t c = 0; c < x.cols; c += wide) {
        const Rectangle part{std::min(tall, count - r), std::min(wide, x.cols - c), x.cols};
        const float scale =
            encode_with_own_scale(recipe, values + r * x.cols + c, part, q + (first + r) * x.cols + c);
        const std::int64_t row = (first + r) / tall;
        const std::int64_t col = c / wide;
        write_as(s, base + (mn_major ? col * pitch + row : row * pitch + col), scale);
      }
    }
  });
}

// One scale a row and a segment of columns; `ends` of the segments. Columns past the last end stay zero.
void quantize_rows(const problem::Recipe& recipe, const MatrixView& x, std::int64_t first_scale,
                   const std::vector<std::int64_t>& ends, std::uint8_t* q, HostTensor& s) {
  for_each_strip(x, [&](std::int64_t first, std::int64_t count, const float* values) {
    for (std::int64_t r = 0; r < count; ++r) {
      std::int64_t start = 0;
      for (std::size_t g = 0; g < ends.size(); ++g) {
        const Rectangle part{1, ends[g] - start, x.cols};
        const float scale = encode_with_own_scale(recipe, values + r * x.cols + start, part,
                                                  q + (first + r) * x.cols + start);
        write_as(s, first_scale + static_cast<std::int64_t>(g) * x.rows + first + r, scale);
        start = ends[g];
      }
    }
  });
}

float tensor_factor(const problem::Recipe& recipe, const Source& source) {
  const MatrixView all = matrix_of(source.tensor, 0, source.experts * source.rows, source.cols, false);
  std::vector<float> largest(static_cast<std::size_t>(ceil_div(all.rows, 128)), 0.0F);
  for_each_strip(all, [&](std::int64_t first, std::int64_t count, const float* values) {
    largest[static_cast<std::size_t>(first / 128)] = largest_magnitude(values, {count, all.cols, all.cols});
  });
  const Rectangle row{1, static_cast<std::int64_t>(largest.size()), 0};
  return factor_of(recipe, largest_magnitude(largest.data(), row));
}

}  // namespace

void quantize_fp32(const problem::Recipe& recipe, const Source& source,
                   const std::optional<RowGroups>& groups, bool col, HostTensor& q, HostTensor& s) {
  const bool one_scale = recipe.block.kind == Block::Kind::tensor;
  const float factor = one_scale ? tensor_factor(recipe, source) : 0.0F;
  if (one_scale) write_as(s, 0, scale_of(factor));
  for (std::int64_t e = 0; e < source.experts; ++e) {
    MatrixView x = matrix_of(source.tensor, e, source.rows, source.cols, source.transposed);
    if (col) x = x.transpose();
    std::uint8_t* out = q.bytes.data() + e * x.rows * x.cols;
    if (one_scale) {
      for_each_strip(x, [&](std::int64_t first, std::int64_t count, const float* values) {
        encode(recipe, factor, values, {count, x.cols, x.cols}, out + first * x.cols);
      });
    } else if (recipe.block.kind == Block::Kind::row) {
      const std::vector<std::int64_t> segments =
          col && groups ? groups->ends : std::vector<std::int64_t>{x.cols};
      quantize_rows(recipe, x, e * x.rows, segments, out, s);
    } else {
      quantize_blocks(recipe, x, e, out, s);
    }
  }
}

}  // namespace mxjit::reference
