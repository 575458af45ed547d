// Op "quantize": which tensor is quantized, along which axes.
#include "reference/quantize.hpp"

#include "mxjit/error.hpp"
#include "reference/matrix.hpp"
#include "reference/ops.hpp"

namespace mxjit::reference {

void quantize(const problem::Quantize& op, const TensorMap& inputs, TensorMap& outputs) {
  if (!std::holds_alternative<std::monostate>(op.pre) || op.emit_high) {
    throw Error(ErrorCode::unsupported, "the CPU does not execute pre and emit_high", "/pre");
  }
  const bool transposed = op.input_layout == problem::InputLayout::col;
  const Source source{inputs.at("x"), leading_count(op.input.shape), extent(op.input.shape, 1),
                      extent(op.input.shape, 0), transposed};
  const auto axis = op.recipe.scaling == Scaling::mx ? quantize_mx : quantize_fp32;
  if (op.axes.row) axis(op, source, inputs, false, outputs.at("q_row"), outputs.at("s_row"));
  if (op.axes.col) axis(op, source, inputs, true, outputs.at("q_col"), outputs.at("s_col"));
}

}  // namespace mxjit::reference
