// Float scales: of blocks, which a tile holds; of rows, which a kernel of their own holds on chip; of
// columns, of rows and columns together, and of the tensor, in two passes of one launch.
#include "configure/quantize_shared.hpp"

namespace mxjit::configure {
namespace {

using problem::Quantize;

std::string_view span_name(Block::Kind kind) {
  switch (kind) {
    case Block::Kind::row:
      return "row";
    case Block::Kind::tensor:
      return "tensor";
    default:
      return "block";
  }
}

/// As high as a block.
TileGeometry square_geometry(int min_blocks) { return {16, 4, 1, min_blocks}; }

TileGeometry fp32_col_geometry(const Quantize& problem) {
  const bool grouped = problem.groups && problem.recipe.block.kind == Block::Kind::row;
  const bool fused = is_computed(problem) || problem.emit_high;
  return square_geometry(grouped || fused || problem.input.dtype == DType::fp32 ? 2 : 3);
}

TileGeometry fp32_row_geometry(const Quantize& problem, std::int64_t n) {
  const Block& block = problem.recipe.block;
  const bool computed = is_computed(problem);
  const int min_blocks = computed                                                  ? fused_min_blocks(problem)
                         : problem.emit_high || problem.input.dtype == DType::fp32 ? 2
                                                                                   : 4;
  if (block.kind == Block::Kind::tensor || block.rows > 1) return square_geometry(min_blocks);
  if (block.kind == Block::Kind::row && problem.groups) return square_geometry(2);  // groups inside a row
  // Transposed scales of a column of blocks are 128 in a row.
  if (problem.recipe.scale_layout == ScaleLayout::mn_major)
    return computed ? square_geometry(min_blocks) : TileGeometry{8, 8, 1, min_blocks};
  return wide_geometry(n, min_blocks, computed ? 4 : 8);
}

// ---- rows alone

constexpr std::int64_t lanes = 32, most_units = 8, most_computed_units = 6;

/// Elements of 16 bytes.
std::int64_t unit(const Quantize& problem) { return quantized_dtype(problem) == DType::fp32 ? 4 : 8; }

/// Rows of `n` elements. A thread keeps up to eight units, so that enough loads are in flight and thread
/// blocks enough stay on a multiprocessor.
Configuration rows(const Quantize& problem, std::int64_t n) {
  const std::int64_t units = std::max<std::int64_t>(ceil_div(n, unit(problem)), 1);
  std::int64_t warps = 1;
  std::int64_t threads = 256;
  std::int64_t each = ceil_div(units, lanes);
  const std::int64_t most = is_computed(problem) ? most_computed_units : most_units;
  if (each > most) {
    for (warps = 4; warps < 16 && ceil_div(units, lanes * warps) > most_units / 2;) warps *= 2;
    threads = lanes * warps;
    each = ceil_div(units, threads);
  }
  const bool held = each <= most;
  const std::int64_t together = each == 1 ? 4 : each == 2 ? 2 : 1;  // rows
  Configuration configuration;
  configuration.kernel = "quantize/fp32_rows";
  configuration.constants = {
      {"format", enumerator("Format", to_string(problem.recipe.format))},
      {"rounding", enumerator("Rounding", to_string(problem.recipe.rounding))},
      {"warps", warps},
      {"rows", together},
      {"units", held ? each : std::int64_t{1}},
      {"held", held},
  };
  add_values(configuration, problem);
  add_constants(configuration, problem.groups);
  configuration.threads = static_cast<int>(threads);
  configuration.min_blocks = static_cast<int>((is_computed(problem) ? 512 : 1024) / threads);
  return configuration;
}

}  // namespace

Configuration fp32_tiles(const char* kernel, const Quantize& problem, const QuantizeMatrix& matrix,
                         const TileGeometry& geometry) {
  const Block& block = problem.recipe.block;
  const std::int64_t block_rows = block.kind == Block::Kind::extents  ? block.rows
                                  : block.kind == Block::Kind::tensor ? 128
                                                                      : 1;
  Configuration configuration;
  configuration.kernel = kernel;
  configuration.constants = {
      {"span", enumerator("Span", span_name(block.kind))},
      {"block_rows", block_rows},
      {"block_columns", std::int64_t{128}},
  };
  add_constants(configuration, problem, matrix);
  add_values(configuration, problem);
  add_constants(configuration, problem.groups);
  add_constants(configuration, geometry);
  return configuration;
}

std::vector<Configuration> configure_quantize_fp32(const Quantize& problem, const Profile&) {
  const QuantizeMatrix matrix = matrix_in_memory(problem);
  const Block::Kind kind = problem.recipe.block.kind;
  std::vector<Configuration> all;
  const bool transposed = problem.input_layout == problem::InputLayout::col;
  const bool turned =
      turns_rows(transposed, is_computed(problem), problem.emit_high, problem.groups.has_value());
  if (kind == Block::Kind::row && !matrix.col && !turned) {
    // The choice changes where a row fills all lanes of a warp once more, and no more past the longest held.
    const std::int64_t step = lanes * unit(problem), longest = step * 16 * most_units + 1;
    const auto add = [&](std::int64_t n) { add_new(all, rows(problem, transposed ? bucket(n) : n)); };
    const std::int64_t last = std::min(matrix.n.max, longest);
    for (std::int64_t n = std::min(matrix.n.min, longest); n < last; n = (n / step + 1) * step + 1) add(n);
    add(last);
    return all;
  }
  const char* const kernel = kind == Block::Kind::extents ? "quantize/fp32" : "quantize/fp32_passes";
  if (matrix.col) return {fp32_tiles(kernel, problem, matrix, fp32_col_geometry(problem))};
  for (const std::int64_t n : row_lengths(matrix.n, transposed))
    add_new(all, fp32_tiles(kernel, problem, matrix, fp32_row_geometry(problem, n)));
  return all;
}

}  // namespace mxjit::configure
