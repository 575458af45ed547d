// Float scales: of blocks, which a tile holds; of rows, which are held on chip (quantize_rows.cpp); of
// columns, of rows and columns together, and of the tensor, in two passes.
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

/// Low, where that gives more multiprocessors something to do.
TileGeometry low_geometry(int min_blocks) { return {4, 4, 1, min_blocks}; }

TileGeometry fp32_col_geometry(const Quantize& problem) {
  const bool grouped = problem.groups && problem.recipe.block.kind == Block::Kind::row;
  const bool fused = is_computed(problem) || problem.emit_high;
  return square_geometry(grouped || fused || problem.input.dtype == DType::fp32 ? 2 : 3);
}

bool is_small(std::int64_t m, std::int64_t n) {
  constexpr std::int64_t most = std::int64_t{1} << 20;
  return bucket(m) <= most / bucket(n);
}

TileGeometry fp32_row_geometry(const Quantize& problem, std::int64_t m, std::int64_t n) {
  const Block& block = problem.recipe.block;
  const bool computed = is_computed(problem);
  const int min_blocks = computed                                                  ? fused_min_blocks(problem)
                         : problem.emit_high || problem.input.dtype == DType::fp32 ? 2
                                                                                   : 4;
  if (block.kind == Block::Kind::tensor) {
    const bool plain = !computed && !problem.emit_high && problem.input.shape.size() == 2;
    return plain && is_small(m, n) ? low_geometry(min_blocks) : square_geometry(min_blocks);
  }
  if (block.rows > 1) return square_geometry(min_blocks);
  if (block.kind == Block::Kind::row && problem.groups) return square_geometry(2);  // groups inside a row
  // Transposed scales of a column of blocks are 128 in a row.
  if (problem.recipe.scale_layout == ScaleLayout::mn_major)
    return computed ? square_geometry(min_blocks) : TileGeometry{8, 8, 1, min_blocks};
  return wide_geometry(n, min_blocks, computed ? 4 : 8);
}

}  // namespace

Configuration fp32_tiles(const char* kernel, const Quantize& problem, const QuantizeMatrix& matrix,
                         const TileGeometry& geometry) {
  const Block& block = problem.recipe.block;
  // Of the tensor's one block a tile is what its rows are.
  const std::int64_t block_rows = block.kind == Block::Kind::extents ? block.rows
                                  : block.kind == Block::Kind::tensor
                                      ? 2 * geometry.rows_per_lane * geometry.warps_m
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

std::vector<Configuration> configure_quantize_fp32(const Quantize& problem, const Profile& profile) {
  const QuantizeMatrix matrix = matrix_in_memory(problem);
  const Block::Kind kind = problem.recipe.block.kind;
  std::vector<Configuration> all;
  const bool transposed = problem.input_layout == problem::InputLayout::col;
  const bool turned =
      turns_rows(transposed, is_computed(problem), problem.emit_high, problem.groups.has_value());
  if (kind == Block::Kind::row && !matrix.col && !turned) return configure_quantize_rows(problem, profile);
  const char* const kernel = kind == Block::Kind::extents ? "quantize/fp32" : "quantize/fp32_passes";
  if (matrix.col) return {fp32_tiles(kernel, problem, matrix, fp32_col_geometry(problem))};
  const auto add = [&](std::int64_t m, std::int64_t n) {
    add_new(all, fp32_tiles(kernel, problem, matrix, fp32_row_geometry(problem, m, n)));
  };
  if (kind == Block::Kind::tensor) {
    // The choice changes once on the way from the smallest tensor to the largest.
    add(matrix.m.min, matrix.n.min);
    add(matrix.m.max, matrix.n.max);
    return all;
  }
  for (const std::int64_t n : row_lengths(matrix.n, transposed)) add(matrix.m.max, n);
  return all;
}

}  // namespace mxjit::configure
