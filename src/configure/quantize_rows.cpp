// Rows alone that a kernel holds on chip: with a float scale each and, after RMSNorm, with scales of blocks.
#include "configure/quantize_shared.hpp"

namespace mxjit::configure {
namespace {

using problem::Quantize;

constexpr std::int64_t lanes = 32, most_warps = 16, most_units = 8;
// With RMSNorm: of fp32, and of several rows.
constexpr std::int64_t most_wide_units = 6, most_shared_units = 5;

/// Elements of 16 bytes.
std::int64_t unit(const Quantize& problem) { return quantized_dtype(problem) == DType::fp32 ? 4 : 8; }

/// How many units of how many rows a thread has, in a team of so many warps.
struct RowGeometry {
  std::int64_t warps;
  std::int64_t threads;  // a thread block: a team, or several of one warp
  std::int64_t rows;
  std::int64_t units;
  bool held;
  int min_blocks;
};

/// A thread keeps up to eight units, so that enough loads are in flight and thread blocks enough stay on a
/// multiprocessor.
RowGeometry plain_geometry(const Quantize& problem, std::int64_t units) {
  constexpr std::int64_t most_computed_units = 6;
  std::int64_t warps = 1;
  std::int64_t threads = 256;
  std::int64_t each = ceil_div(units, lanes);
  const std::int64_t most = is_computed(problem) ? most_computed_units : most_units;
  if (each > most) {
    for (warps = 4; warps < most_warps && ceil_div(units, lanes * warps) > most_units / 2;) warps *= 2;
    threads = lanes * warps;
    each = ceil_div(units, threads);
  }
  const bool held = each <= most;
  const std::int64_t rows = each == 1 ? 4 : each == 2 ? 2 : 1;
  const auto min_blocks = static_cast<int>((is_computed(problem) ? 512 : 1024) / threads);
  return {warps, threads, rows, held ? each : 1, held, min_blocks};
}

/// Of RMSNorm. What is found once a row, or read for every row, is a large part of the work: a thread has as
/// many units as its registers hold, in several rows if possible. Small thread blocks: while one waits for
/// its rows, others compute. Of `few` rows each has its own, so that all are on their way at once.
RowGeometry norm_geometry(const Quantize& problem, const Profile& profile, bool few, std::int64_t units) {
  const bool wide = problem.input.dtype == DType::fp32;
  const auto each = [&](std::int64_t warps) { return ceil_div(units, lanes * warps); };
  std::int64_t warps = 1;
  while (warps < 4 && each(warps) > most_shared_units) warps *= 2;
  const bool shared = each(warps) <= most_shared_units;
  const std::int64_t most = wide ? most_wide_units : most_units;
  while (warps < most_warps && each(warps) > most) warps *= 2;
  const std::int64_t threads = warps == 1 ? 128 : lanes * warps;
  if (each(warps) > most) return {8, 256, 1, 1, false, 2};
  const std::int64_t most_rows = each(warps) <= 2 ? 4 : 2;
  const std::int64_t rows = few || !shared ? 1 : wide ? most_rows / 2 : most_rows;
  // Threads; for targets after sm_90a the compiler needs more registers for several rows.
  const std::int64_t at_once = wide || rows == 1                     ? 512
                               : profile.target != "sm_90a"          ? 384
                               : problem.emit_high || problem.groups ? 512
                                                                     : 640;
  return {warps, threads, rows, each(warps), true, static_cast<int>(at_once / threads)};
}

/// Of so many rows as are on a device at once; how many experts there are is not known here.
bool are_few(const Quantize& problem, std::int64_t m) {
  return is_normalized(problem) && problem.input.shape.size() == 2 && bucket(m) <= 512;
}

/// Rows of `n` elements.
Configuration rows(const Quantize& problem, const Profile& profile, bool few, std::int64_t n) {
  const std::int64_t units = std::max<std::int64_t>(ceil_div(n, unit(problem)), 1);
  const RowGeometry geometry =
      is_normalized(problem) ? norm_geometry(problem, profile, few, units) : plain_geometry(problem, units);
  const problem::Recipe& recipe = problem.recipe;
  const bool blocks = recipe.block.kind == Block::Kind::extents;
  Configuration configuration;
  configuration.kernel = "quantize/rows";
  configuration.constants = {
      {"format", enumerator("Format", to_string(recipe.format))},
      {"rounding", enumerator("Rounding", to_string(recipe.rounding))},
      {"span", enumerator("Span", blocks ? "block" : "row")},
      {"mx", recipe.scaling == Scaling::mx},
      {"block_columns", std::int64_t{blocks ? recipe.block.cols : 1}},
      {"scale_layout", enumerator("ScaleLayout", to_string(recipe.scale_layout))},
      // Experts are more rows, unless their scales are padded.
      {"batched", problem.input.shape.size() == 3 && blocks && recipe.scale_layout != ScaleLayout::plain},
      {"warps", geometry.warps},
      {"rows", geometry.rows},
      {"units", geometry.units},
      {"held", geometry.held},
  };
  add_values(configuration, problem);
  add_constants(configuration, problem.groups);
  configuration.threads = static_cast<int>(geometry.threads);
  configuration.min_blocks = geometry.min_blocks;
  return configuration;
}

}  // namespace

std::vector<Configuration> configure_quantize_rows(const Quantize& problem, const Profile& profile) {
  const QuantizeMatrix matrix = matrix_in_memory(problem);
  const problem::Extent& n = matrix.n;
  const bool transposed = problem.input_layout == problem::InputLayout::col;
  std::vector<Configuration> all;
  // The choice changes where a row fills all lanes of a warp once more, and no more past the longest held.
  const std::int64_t step = lanes * unit(problem), longest = step * most_warps * most_units + 1;
  const auto add = [&](std::int64_t length) {
    for (const std::int64_t m : {matrix.m.min, matrix.m.max})
      add_new(all, rows(problem, profile, are_few(problem, m), transposed ? bucket(length) : length));
  };
  const std::int64_t last = std::min(n.max, longest);
  for (std::int64_t at = std::min(n.min, longest); at < last; at = (at + step - 1) / step * step + 1) add(at);
  add(last);
  return all;
}

}  // namespace mxjit::configure
