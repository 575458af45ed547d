#include "dispatch/quantize_workspace.hpp"

#include <algorithm>

#include "configure/quantize_shared.hpp"
#include "dispatch/quantize_check.hpp"
#include "dispatch/tensor_check.hpp"

namespace mxjit {
namespace dispatch {

QuantizeWorkspace quantize_workspace(const QuantizeOptions& options, const Tensor& x) {
  QuantizeWorkspace workspace;
  Checked checked;
  const auto words = [&](std::int64_t a, std::int64_t b) {
    constexpr std::int64_t word = 4, alignment = 256;
    return checked.round_up(checked.times(checked.times(a, b), word), alignment);
  };
  const auto last = static_cast<std::size_t>(x.rank) - 1;
  const std::int64_t experts = x.rank == 3 ? x.shape[0] : 1;
  std::int64_t m = x.shape[last - 1], n = x.shape[last];
  if (is_swiglu(options.pre)) (options.transposed_input ? m : n) /= 2;
  constexpr std::int64_t tile = 128;
  const auto strips_of = [&](std::int64_t extent) {
    return checked.times(experts, std::max<std::int64_t>(ceil_div(extent, tile), 1));
  };

  const bool row = options.transposed_input ? options.axes.col : options.axes.row;
  const bool col = options.transposed_input ? options.axes.row : options.axes.col;
  const bool computed = options.pre != Pre::none, grouped = options.groups.count > 0;
  const bool spans = options.scaling == Scaling::fp32 && options.block.kind != Block::Kind::extents;
  const bool one = spans && options.block.kind == Block::Kind::tensor;
  // Rows alone are held on chip.
  const bool held = spans && !one && !col &&
                    !configure::turns_rows(options.transposed_input, computed, options.emit_high, grouped);
  const bool normalized = options.pre == Pre::rmsnorm &&
                          !configure::holds_normalized_rows(options.scaling, options.block, options.axes,
                                                            options.transposed_input, grouped);
  if (normalized) {
    const std::int64_t lines = options.transposed_input ? n : m;
    workspace.sum_bytes = words(experts, checked.times(lines, 2));
    // A word for the grid, and one a line of tiles or pass.
    workspace.progress_bytes = words(strips_of(lines) + 3, 1);
  }
  const bool passes = spans && !held;
  if (one) {
    workspace.row_bytes = words(1, 1);
  } else if (passes) {
    // Inside each group, down the logical columns.
    const std::int64_t groups = grouped ? options.groups.count : experts;
    if (row) workspace.row_bytes = words(options.transposed_input ? groups : experts, m);
    if (col) workspace.col_bytes = words(options.transposed_input ? experts : groups, n);
  }
  // A word for the grid, and one a strip, which is a tile or more across.
  if (passes && !normalized) workspace.progress_bytes = one ? words(2, 1) : words(strips_of(n) + 1, 1);
  if (!checked.ok) refuse("x", "a size that fits 63 bits", shape_text(x.shape, x.rank));
  return workspace;
}

}  // namespace dispatch

std::size_t workspace_size(const QuantizeOptions& options, const Tensor& x) {
  dispatch::check_options(options);
  dispatch::check_input(x);
  return static_cast<std::size_t>(dispatch::quantize_workspace(options, x).bytes());
}

}  // namespace mxjit
