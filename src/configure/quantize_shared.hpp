// What the configurations of op "quantize" share.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "configure/configuration.hpp"
#include "configure/profile.hpp"
#include "problem/problem.hpp"

namespace mxjit::configure {

/// The matrix that is quantized, as its input lies in memory, and the axes of it that are asked for.
struct QuantizeMatrix {
  bool row;
  bool col;
  problem::Extent m, n;
};

inline QuantizeMatrix matrix_in_memory(const problem::Quantize& problem) {
  const auto& shape = problem.input.shape;
  QuantizeMatrix logical = {problem.axes.row, problem.axes.col, shape[shape.size() - 2], shape.back()};
  if (std::holds_alternative<problem::Swiglu>(problem.pre))
    logical.n = {logical.n.min / 2, logical.n.max / 2};
  if (problem.input_layout == problem::InputLayout::row) return logical;
  return {logical.col, logical.row, logical.n, logical.m};
}

/// How a tile is cut, and how many thread blocks a multiprocessor's registers hold without spills.
struct TileGeometry {
  std::int64_t rows_per_lane;
  std::int64_t warps_m;
  std::int64_t warps_n;
  int min_blocks;
  std::int64_t lanes_across = 16;
  friend auto operator<=>(const TileGeometry&, const TileGeometry&) = default;
};

/// What is quantized is computed first.
inline bool is_computed(const problem::Quantize& problem) {
  return !std::holds_alternative<std::monostate>(problem.pre);
}

/// By sums that take a pass of their own.
inline bool is_normalized(const problem::Quantize& problem) {
  return std::holds_alternative<problem::RmsNorm>(problem.pre);
}

/// A kernel that holds rows alone on chip neither turns what it writes, nor finds gates and ups in other
/// rows, nor has groups inside a row.
constexpr bool turns_rows(bool transposed, bool computed, bool emit_high, bool grouped) {
  return transposed && (computed || emit_high || grouped);
}

/// After RMSNorm a kernel holds rows alone on chip, with a float scale each or with the usual blocks.
constexpr bool holds_normalized_rows(Scaling scaling, const Block& block, Axes axes, bool transposed,
                                     bool grouped) {
  if (axes.col || transposed) return false;
  if (block.kind == Block::Kind::row) return true;
  return block.kind == Block::Kind::extents && block.rows == 1 &&
         block.cols == (scaling == Scaling::mx ? 32 : 128) && !grouped;
}
inline bool holds_normalized_rows(const problem::Quantize& problem) {
  return is_normalized(problem) &&
         holds_normalized_rows(problem.recipe.scaling, problem.recipe.block, problem.axes,
                               problem.input_layout == problem::InputLayout::col, problem.groups.has_value());
}

/// SwiGLU that needs few registers: no limit, nothing else to write or to find elsewhere.
inline bool is_light(const problem::Quantize& problem) {
  const auto* swiglu = std::get_if<problem::Swiglu>(&problem.pre);
  return swiglu != nullptr && !swiglu->limit && !problem.emit_high && problem.input.dtype == DType::bf16 &&
         problem.input_layout == problem::InputLayout::row && problem.recipe.scaling == Scaling::mx;
}

/// How many thread blocks of 128 at once compute panels, operands of several rows on their way, or write them
/// in bf16 besides.
inline int fused_min_blocks(const problem::Quantize& problem) {
  if (is_light(problem)) return 4;
  return is_computed(problem) && problem.input.dtype != DType::fp32 ? 3 : 2;
}

/// The extent that stands for `extent`: kernels are chosen once for everything up to the next power of two.
inline std::int64_t bucket(std::int64_t extent) {
  constexpr std::int64_t most = std::int64_t{1} << 40;
  return static_cast<std::int64_t>(
      std::bit_ceil(static_cast<std::uint64_t>(std::clamp(extent, std::int64_t{1}, most))));
}

constexpr std::int64_t ceil_div(std::int64_t value, std::int64_t by) { return (value + by - 1) / by; }

/// An enumerator of the templates, which spell theirs as problems do.
inline std::string enumerator(std::string_view enumeration, std::string_view value) {
  return std::string(enumeration) + "::" + std::string(value);
}

/// Tiles of short rows and several panels, written in runs of `warps` plain scales a row: as wide as that,
/// unless it leaves more warps without work than fewer would. `n` is a row's length.
inline TileGeometry wide_geometry(std::int64_t n, int min_blocks, std::int64_t warps = 8) {
  const std::int64_t panels = ceil_div(n, 128);
  std::int64_t warps_n = warps;
  for (std::int64_t fewer = warps / 2; fewer > 0; fewer /= 2) {
    if (ceil_div(panels, fewer) * fewer < ceil_div(panels, warps_n) * warps_n) warps_n = fewer;
  }
  return {8, warps / warps_n, warps_n, min_blocks};
}

/// Lengths of rows that stand for all from `n.min` to `n.max` where wide_geometry chooses: the choice repeats
/// every eight panels. `bucketed`: lengths are chosen for by their buckets.
std::vector<std::int64_t> row_lengths(const problem::Extent& n, bool bucketed);

/// What is quantized: x as it is, or bf16 numbers that an operation has made of it.
inline DType quantized_dtype(const problem::Quantize& problem) {
  return is_computed(problem) ? DType::bf16 : problem.input.dtype;
}

/// The constants that say how x becomes what is quantized.
void add_values(Configuration& configuration, const problem::Quantize& problem);

/// The constants that axes, rank and recipe are, but for what a scale spans.
void add_constants(Configuration& configuration, const problem::Quantize& problem,
                   const QuantizeMatrix& matrix);
/// Those that a geometry and the problem's groups are.
void add_constants(Configuration& configuration, const TileGeometry& geometry);
void add_constants(Configuration& configuration, const std::optional<problem::MGroups>& groups);

/// A kernel of tiles with float scales, of blocks or of more than a tile.
Configuration fp32_tiles(const char* kernel, const problem::Quantize& problem, const QuantizeMatrix& matrix,
                         const TileGeometry& geometry);

/// Adds what is not there yet.
void add_new(std::vector<Configuration>& all, Configuration configuration);

/// Rows held on chip: all kernels of a range.
std::vector<Configuration> configure_quantize_rows(const problem::Quantize& problem, const Profile& profile);

/// Float scales: the kernels of `problem` in launch order, or all of a range.
std::vector<Configuration> configure_quantize_fp32(const problem::Quantize& problem, const Profile& profile);

}  // namespace mxjit::configure
