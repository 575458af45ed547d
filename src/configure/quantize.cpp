#include "configure/quantize.hpp"

#include <algorithm>

#include "configure/quantize_shared.hpp"

namespace mxjit::configure {
namespace {

using problem::InputLayout;

constexpr bool is_block(const Block& block, std::int32_t rows, std::int32_t cols) {
  return block.rows == rows && block.cols == cols;
}

/// Blocked codes of groups are placed one tile at a time.
bool places_groups(const problem::Quantize& problem) {
  return problem.groups && problem.recipe.scale_layout == ScaleLayout::blocked;
}

// Where tiles of 128 x 128 would leave multiprocessors without work, or each with little, small ones of short
// lanes do not.
bool takes_small_tiles(const problem::Quantize& problem, std::int64_t m, std::int64_t n) {
  if (!is_block(problem.recipe.block, 1, 32) || places_groups(problem)) return false;
  if (problem.input.shape.size() != 2) return false;  // how many experts there are is not known here
  const std::int64_t most = problem.recipe.scale_layout == ScaleLayout::blocked ? 512 : 256;
  return std::max<std::int64_t>(bucket(m) / 128, 1) <= most / std::max<std::int64_t>(bucket(n) / 128, 1);
}

// 32 x 128, a run of four codes in every row, or 128 x 32, where a blocked tile has four for a column.
TileGeometry small_geometry(const problem::Quantize& problem, const QuantizeMatrix& matrix) {
  const bool high = matrix.col && problem.recipe.scale_layout == ScaleLayout::blocked;
  return {.rows_per_lane = 4,
          .warps_m = high ? 4 : 1,
          .warps_n = high ? 1 : 4,
          .min_blocks = 4,
          .lanes_across = 4};
}

// Values that are computed first wait for their operands: with half the rows a lane, half as many columns
// wide, twice as many warps do so at once. 64 x 128; 128 x 128 where groups place codes by whole tiles, and
// where there are enough tiles to go round, for their longer runs of plain codes.
TileGeometry computed_geometry(const problem::Quantize& problem, const Profile& profile, bool whole) {
  // RMSNorm leaves registers for so many only where there is nothing else to keep; so does shared memory.
  const bool sparing = !problem.groups && !problem.emit_high && problem.input.shape.size() == 2 &&
                       problem.input_layout == InputLayout::row && problem.input.dtype != DType::fp32 &&
                       profile.target == "sm_90a";
  const bool most =
      profile.shared_bytes_per_sm >= 200 * 1024 && (is_normalized(problem) ? sparing : is_light(problem));
  const int warps = most ? 24 : 16;
  if (whole)
    return {.rows_per_lane = 8, .warps_m = 4, .warps_n = 2, .min_blocks = warps / 8, .lanes_across = 8};
  return {.rows_per_lane = 8, .warps_m = 2, .warps_n = 2, .min_blocks = warps / 4, .lanes_across = 8};
}

TileGeometry row_geometry(const problem::Quantize& problem, const Profile& profile, std::int64_t n) {
  const bool tall = problem.recipe.block.rows > 1 || places_groups(problem);
  const bool computed = is_computed(problem);
  const bool blocked = problem.recipe.scale_layout == ScaleLayout::blocked;
  if (computed && blocked && is_block(problem.recipe.block, 1, 32))
    return computed_geometry(problem, profile, places_groups(problem));
  const int min_blocks = computed || problem.emit_high
                             ? fused_min_blocks(problem) - (computed && !tall ? 1 : 0)
                         : problem.input.dtype == DType::bf16 ? 4
                                                              : 2;
  // A blocked tile of codes covers 128 rows.
  if (tall) return {16, 4, 1, min_blocks};
  if (blocked) return {8, 8, 1, min_blocks};
  if (is_light(problem)) return wide_geometry(n, 5, 4);
  return wide_geometry(n, min_blocks);
}

// Columns are read as panels of 32 rows, as high as a block. With enough tiles to go round, high ones write
// longer runs of columns and of plain codes. `m` and `n` are buckets.
TileGeometry col_geometry(const problem::Quantize& problem, const Profile& profile, std::int64_t m,
                          std::int64_t n) {
  const bool plain = problem.recipe.scale_layout == ScaleLayout::plain;
  const bool usual = is_block(problem.recipe.block, 1, 32);
  const auto has = [&](std::int64_t tiles) { return m / 128 >= tiles / std::max<std::int64_t>(n / 128, 1); };
  if (is_computed(problem) && usual)
    return computed_geometry(problem, profile, places_groups(problem) || (plain && has(16384)));
  if (is_computed(problem) || problem.emit_high) return {16, 4, 1, fused_min_blocks(problem)};
  const DType input = problem.input.dtype;
  // For sm_120a the compiler needs more registers than a third thread block of fp16 leaves.
  const bool three = input == DType::fp16 && profile.target != "sm_120a";
  if (input != DType::bf16) return {16, 4, 1, three ? 3 : 2};
  if (!usual || places_groups(problem)) return {16, 4, 1, 4};
  if (has(plain ? 4096 : 16384)) return {16, 8, 1, 2};
  return {16, 4, 1, 4};
}

Configuration configuration_of(const problem::Quantize& problem, const QuantizeMatrix& matrix,
                               const TileGeometry& geometry) {
  Configuration configuration;
  configuration.kernel = "quantize/mx";
  configuration.constants = {
      {"block_rows", std::int64_t{problem.recipe.block.rows}},
      {"block_columns", std::int64_t{problem.recipe.block.cols}},
  };
  add_constants(configuration, problem, matrix);
  add_values(configuration, problem);
  add_constants(configuration, problem.groups);
  add_constants(configuration, geometry);
  return configuration;
}

// One kernel for all extents: tiles as high as a block, in two passes or three.
Configuration norm_configuration(const problem::Quantize& problem, const Profile& profile,
                                 const QuantizeMatrix& matrix) {
  constexpr const char* kernel = "quantize/norm";
  const bool mx = problem.recipe.scaling == Scaling::mx;
  const bool spans = problem.recipe.block.kind != Block::Kind::extents;
  const TileGeometry geometry = mx && is_block(problem.recipe.block, 1, 32)
                                    ? computed_geometry(problem, profile, true)
                                    : TileGeometry{16, 4, 1, spans ? 2 : fused_min_blocks(problem)};
  Configuration configuration =
      mx ? configuration_of(problem, matrix, geometry) : fp32_tiles(kernel, problem, matrix, geometry);
  configuration.kernel = kernel;
  configuration.constants["mx"] = mx;
  configuration.constants.try_emplace("span", enumerator("Span", "block"));
  return configuration;
}

}  // namespace

std::vector<Configuration> configure_quantize(const problem::Quantize& problem, const Profile& profile) {
  const QuantizeMatrix matrix = matrix_in_memory(problem);
  if (holds_normalized_rows(problem)) return configure_quantize_rows(problem, profile);
  if (is_normalized(problem)) return {norm_configuration(problem, profile, matrix)};
  if (problem.recipe.scaling == Scaling::fp32) return configure_quantize_fp32(problem, profile);
  std::vector<Configuration> all;
  const auto add = [&](const TileGeometry& geometry) {
    add_new(all, configuration_of(problem, matrix, geometry));
  };
  if (takes_small_tiles(problem, matrix.m.min, matrix.n.min)) add(small_geometry(problem, matrix));
  if (takes_small_tiles(problem, matrix.m.max, matrix.n.max)) return all;
  if (!matrix.col) {
    for (const std::int64_t n : row_lengths(matrix.n, problem.input_layout == InputLayout::col))
      add(row_geometry(problem, profile, n));
    return all;
  }
  // Inside a bucket of m small tiles end once along n, and after that the choice changes once at most: the
  // first bucket past them and the last one tell.
  for (std::int64_t m = bucket(matrix.m.min); m <= bucket(matrix.m.max); m *= 2) {
    std::int64_t n = bucket(matrix.n.min);
    while (n < bucket(matrix.n.max) && takes_small_tiles(problem, m, n)) n *= 2;
    for (const std::int64_t of : {n, bucket(matrix.n.max)})
      if (!takes_small_tiles(problem, m, of)) add(col_geometry(problem, profile, m, of));
  }
  return all;
}

}  // namespace mxjit::configure
