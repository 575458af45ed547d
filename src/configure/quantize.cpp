#include "configure/quantize.hpp"

#include <fmt/format.h>

#include "mxjit/error.hpp"

namespace mxjit::configure {
namespace {

using problem::InputLayout;

[[noreturn]] void refuse(std::string_view field, std::string_view what) {
  throw Error(ErrorCode::unsupported, fmt::format("{}: no kernel in this version for {}", field, what),
              std::string(field));
}

void refuse_what_has_no_kernel(const problem::Quantize& problem) {
  if (problem.recipe.scaling != Scaling::mx) refuse("/scaling", "scaling \"fp32\"");
  if (problem.recipe.amax_cap) refuse("/amax_cap", "an amax cap with scaling \"mx\"");
  if (problem.groups) refuse("/groups", "groups");
  if (!std::holds_alternative<std::monostate>(problem.pre))
    refuse("/pre", "an operation before quantization");
  if (problem.emit_high) refuse("/emit_high", "the value before quantization");
}

/// An enumerator of the templates, which spell their enumerators as problems do.
std::string name(std::string_view enumeration, std::string_view value) {
  return fmt::format("{}::{}", enumeration, value);
}

/// As many as the registers of a multiprocessor hold without spills.
int min_blocks(DType input, bool col, const Block& block) {
  if (input == DType::fp32) return 2;
  if (input == DType::fp16) return 3;
  return col && block == Block{.rows = 1, .cols = 32} ? 5 : 4;
}

}  // namespace

std::vector<Configuration> configure_quantize(const problem::Quantize& problem, const Profile&) {
  refuse_what_has_no_kernel(problem);

  // The kernel works on the matrix in memory. A transposed input exchanges the axes.
  const bool transposed = problem.input_layout == InputLayout::col;
  const bool row = transposed ? problem.axes.col : problem.axes.row;
  const bool col = transposed ? problem.axes.row : problem.axes.col;
  const bool blocked = problem.recipe.scale_layout == ScaleLayout::blocked;

  // Columns need square tiles. Rows alone get the tile that one blocked scale tile covers, or a wide one
  // whose plain codes are written 16 bytes at a time.
  std::int64_t rows_per_lane = 16;
  std::int64_t warps_m = 4;
  std::int64_t warps_n = 1;
  if (!col && problem.recipe.block.rows == 1) {
    rows_per_lane = 8;
    warps_m = blocked ? 8 : 2;
    warps_n = blocked ? 1 : 4;
  }

  Configuration configuration;
  configuration.kernel = "quantize/mx";
  configuration.constants = {
      {"row", row},
      {"col", col},
      {"batched", problem.input.shape.size() == 3},
      {"input", name("Input", to_string(problem.input.dtype))},
      {"format", name("Format", to_string(problem.recipe.format))},
      {"rounding", name("Rounding", to_string(problem.recipe.rounding))},
      {"scale_layout", name("ScaleLayout", to_string(problem.recipe.scale_layout))},
      {"block_rows", std::int64_t{problem.recipe.block.rows}},
      {"block_columns", std::int64_t{problem.recipe.block.cols}},
      {"rows_per_lane", rows_per_lane},
      {"warps_m", warps_m},
      {"warps_n", warps_n},
  };
  configuration.threads = static_cast<int>(32 * warps_m * warps_n);
  configuration.min_blocks = min_blocks(problem.input.dtype, col, problem.recipe.block);
  return {configuration};
}

}  // namespace mxjit::configure
