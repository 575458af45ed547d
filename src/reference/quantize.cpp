// Op "quantize": which values are quantized, along which axes.
#include "reference/quantize.hpp"

#include "reference/matrix.hpp"
#include "reference/ops.hpp"
#include "reference/pre.hpp"

namespace mxjit::reference {

void quantize_axis(const problem::Recipe& recipe, const Source& source,
                   const std::optional<RowGroups>& groups, bool col, HostTensor& q, HostTensor& s) {
  const auto scaling = recipe.scaling == Scaling::mx ? quantize_mx : quantize_fp32;
  scaling(recipe, source, groups, col, q, s);
}

void quantize(const problem::Quantize& op, const TensorMap& inputs, TensorMap& outputs) {
  const std::int64_t experts = leading_count(op.input.shape);
  const std::int64_t rows = extent(op.input.shape, 1);
  std::int64_t cols = extent(op.input.shape, 0);
  std::optional<RowGroups> groups;
  if (op.groups) {
    const int alignment = op.groups->alignment;
    groups = RowGroups{read_offsets(inputs.at("offsets"), rows, alignment), alignment};
  }

  const bool fused = !std::holds_alternative<std::monostate>(op.pre);
  HostTensor high;
  if (fused || op.emit_high) high = apply_pre(op, inputs);
  if (std::holds_alternative<problem::Swiglu>(op.pre)) cols /= 2;
  const bool transposed = !fused && op.input_layout == problem::InputLayout::col;
  const Source source{fused ? high : inputs.at("x"), experts, rows, cols, transposed};
  if (op.axes.row) quantize_axis(op.recipe, source, groups, false, outputs.at("q_row"), outputs.at("s_row"));
  if (op.axes.col) quantize_axis(op.recipe, source, groups, true, outputs.at("q_col"), outputs.at("s_col"));
  if (op.emit_high) outputs["y"] = std::move(high);
}

}  // namespace mxjit::reference
