#include "dispatch/quantize_workspace.hpp"

#include <algorithm>

#include "configure/quantize_shared.hpp"
#include "dispatch/quantize_check.hpp"
#include "dispatch/tensor_check.hpp"
#include "quantize/params.cuh"

namespace mxjit {
namespace dispatch {

namespace {

/// At least as many words as a call has tiles that are few enough for a slot each. It holds for every kernel
/// that a call may get: none has lower or narrower tiles.
std::int64_t slots_of(std::int64_t experts, std::int64_t m, std::int64_t n) {
  constexpr std::int64_t least_rows = 32, least_columns = 128;
  const auto most = [](std::int64_t count) { return std::clamp<std::int64_t>(count, 1, most_slots); };
  return most(most(experts) * most(ceil_div(m, least_rows)) * most(ceil_div(n, least_columns)));
}

}  // namespace

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
    workspace.row_bytes = words(normalized ? 1 : slots_of(experts, m, n), 1);
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
