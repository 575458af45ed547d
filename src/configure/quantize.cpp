#include "configure/quantize.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "mxjit/error.hpp"

namespace mxjit::configure {
namespace {

using problem::Extent;
using problem::InputLayout;

[[noreturn]] void refuse(std::string_view field, std::string_view what) {
  throw Error(ErrorCode::unsupported, fmt::format("{}: no kernel in this version for {}", field, what),
              std::string(field));
}

void refuse_what_has_no_kernel(const problem::Quantize& problem) {
  if (problem.recipe.scaling != Scaling::mx) refuse("/scaling", "scaling \"fp32\"");
  if (problem.recipe.amax_cap) refuse("/amax_cap", "an amax cap with scaling \"mx\"");
  if (problem.groups && problem.input_layout == InputLayout::col)
    refuse("/groups", "groups of a transposed input");
  if (!std::holds_alternative<std::monostate>(problem.pre))
    refuse("/pre", "an operation before quantization");
  if (problem.emit_high) refuse("/emit_high", "the value before quantization");
}

/// The matrix in memory and the axes of it that are asked for.
struct Matrix {
  bool row;
  bool col;
  Extent m, n;
};

Matrix matrix_in_memory(const problem::Quantize& problem) {
  const auto& shape = problem.input.shape;
  const Matrix logical = {problem.axes.row, problem.axes.col, shape[shape.size() - 2], shape.back()};
  if (problem.input_layout == InputLayout::row) return logical;
  return {logical.col, logical.row, logical.n, logical.m};
}

/// How a tile is cut, and how many thread blocks a multiprocessor's registers hold without spills.
struct Geometry {
  std::int64_t rows_per_lane;
  std::int64_t warps_m;
  std::int64_t warps_n;
  int min_blocks;
};

// The extent that stands for `extent`: kernels are chosen once for everything up to the next power of two.
std::int64_t bucket(std::int64_t extent) {
  constexpr std::int64_t most = std::int64_t{1} << 40;
  return static_cast<std::int64_t>(
      std::bit_ceil(static_cast<std::uint64_t>(std::clamp(extent, std::int64_t{1}, most))));
}

constexpr std::int64_t ceil_div(std::int64_t value, std::int64_t by) { return (value + by - 1) / by; }

constexpr bool is_block(const Block& block, std::int32_t rows, std::int32_t cols) {
  return block.rows == rows && block.cols == cols;
}

/// Blocked codes of groups are placed one tile at a time.
bool places_groups(const problem::Quantize& problem) {
  return problem.groups && problem.recipe.scale_layout == ScaleLayout::blocked;
}

Geometry row_geometry(const problem::Quantize& problem, std::int64_t n) {
  const int min_blocks = problem.input.dtype == DType::bf16 ? 4 : 2;
  // A blocked tile of codes covers 128 rows.
  if (problem.recipe.block.rows > 1 || places_groups(problem)) return {16, 4, 1, min_blocks};
  if (problem.recipe.scale_layout == ScaleLayout::blocked) return {8, 8, 1, min_blocks};
  // Plain codes are written fastest when those of a row fill 32 bytes: eight panels, unless that leaves more
  // warps without work than fewer would.
  const std::int64_t panels = ceil_div(n, 128);
  std::int64_t warps_n = 8;
  for (const std::int64_t fewer : {4, 2, 1}) {
    if (ceil_div(panels, fewer) * fewer < ceil_div(panels, warps_n) * warps_n) warps_n = fewer;
  }
  return {8, 8 / warps_n, warps_n, min_blocks};
}

// Columns are read as panels of 32 rows, as high as a block. With enough tiles to go round, high ones write
// longer runs of columns and of plain codes. `m` and `n` are buckets.
Geometry col_geometry(const problem::Quantize& problem, const Profile& profile, std::int64_t m,
                      std::int64_t n) {
  const DType input = problem.input.dtype;
  const bool plain = problem.recipe.scale_layout == ScaleLayout::plain;
  // For sm_120a the compiler needs more registers than a third thread block of fp16 leaves.
  const bool three = input == DType::fp16 && profile.target != "sm_120a";
  if (input != DType::bf16) return {16, 4, 1, three ? 3 : 2};
  if (!is_block(problem.recipe.block, 1, 32) || places_groups(problem)) return {16, 4, 1, 4};
  const std::int64_t enough = plain ? 4096 : 16384;
  if (m / 128 >= enough / std::max<std::int64_t>(n / 128, 1)) return {16, 8, 1, 2};
  return {16, 4, 1, plain ? 4 : 5};
}

std::string name(std::string_view enumeration, std::string_view value) {
  return fmt::format("{}::{}", enumeration, value);
}

Configuration configuration_of(const problem::Quantize& problem, const Matrix& matrix,
                               const Geometry& geometry) {
  Configuration configuration;
  configuration.kernel = "quantize/mx";
  configuration.constants = {
      {"row", matrix.row},
      {"col", matrix.col},
      {"batched", problem.input.shape.size() == 3},
      // The templates spell their enumerators as problems do.
      {"input", name("Input", to_string(problem.input.dtype))},
      {"format", name("Format", to_string(problem.recipe.format))},
      {"rounding", name("Rounding", to_string(problem.recipe.rounding))},
      {"scale_layout", name("ScaleLayout", to_string(problem.recipe.scale_layout))},
      {"block_rows", std::int64_t{problem.recipe.block.rows}},
      {"block_columns", std::int64_t{problem.recipe.block.cols}},
      {"group_alignment", std::int64_t{problem.groups ? problem.groups->alignment : 0}},
      {"max_groups", problem.groups ? bucket(problem.groups->count) : std::int64_t{1}},
      {"rows_per_lane", geometry.rows_per_lane},
      {"warps_m", geometry.warps_m},
      {"warps_n", geometry.warps_n},
  };
  configuration.threads = static_cast<int>(32 * geometry.warps_m * geometry.warps_n);
  configuration.min_blocks = geometry.min_blocks;
  return configuration;
}

}  // namespace

std::vector<Configuration> configure_quantize(const problem::Quantize& problem, const Profile& profile) {
  refuse_what_has_no_kernel(problem);
  const Matrix matrix = matrix_in_memory(problem);
  std::vector<Configuration> all;
  const auto add = [&](const Geometry& geometry) {
    Configuration configuration = configuration_of(problem, matrix, geometry);
    if (std::find(all.begin(), all.end(), configuration) == all.end())
      all.push_back(std::move(configuration));
  };
  if (!matrix.col) {
    // The choice repeats every eight panels.
    const bool tokens_along_n = problem.input_layout == InputLayout::col;
    const auto start = [&](std::int64_t n) { return tokens_along_n ? bucket(n) : n; };
    const std::int64_t last = start(matrix.n.max);
    for (std::int64_t n = start(matrix.n.min), steps = 0; n < last && steps < 16; n += 128, ++steps)
      add(row_geometry(problem, n));
    add(row_geometry(problem, last));
    return all;
  }
  // Inside a bucket of m the choice changes once along n: both ends tell.
  for (std::int64_t m = bucket(matrix.m.min); m <= bucket(matrix.m.max); m *= 2) {
    for (const std::int64_t n : {bucket(matrix.n.min), bucket(matrix.n.max)})
      add(col_geometry(problem, profile, m, n));
  }
  return all;
}

}  // namespace mxjit::configure
