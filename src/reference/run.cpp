// The entry point: checks the inputs, makes the outputs, calls the op.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "mxjit/error.hpp"
#include "reference/matrix.hpp"
#include "reference/ops.hpp"
#include "reference/reference.hpp"

namespace mxjit::reference {
namespace {

[[noreturn]] void refuse(const std::string& name, const std::string& what) {
  throw Error(ErrorCode::invalid_argument, fmt::format("tensor {}: {}", name, what), name);
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ","));
}

void check_input(const problem::TensorDecl& expected, const TensorMap& inputs) {
  const auto found = inputs.find(expected.name);
  if (found == inputs.end()) {
    if (expected.optional) return;
    refuse(expected.name,
           fmt::format("missing; expected {} {}", to_string(expected.dtype), shape_text(expected.shape)));
  }
  const HostTensor& tensor = found->second;
  if (tensor.dtype != expected.dtype && std::find(expected.also_dtypes.begin(), expected.also_dtypes.end(),
                                                  tensor.dtype) == expected.also_dtypes.end()) {
    refuse(expected.name,
           fmt::format("expected dtype {}, got {}", to_string(expected.dtype), to_string(tensor.dtype)));
  }
  if (tensor.shape != expected.shape && std::find(expected.also_shapes.begin(), expected.also_shapes.end(),
                                                  tensor.shape) == expected.also_shapes.end()) {
    refuse(expected.name,
           fmt::format("expected shape {}, got {}", shape_text(expected.shape), shape_text(tensor.shape)));
  }
  const std::size_t bytes = static_cast<std::size_t>(tensor.elements()) * size_of(tensor.dtype);
  if (tensor.bytes.size() != bytes) {
    refuse(expected.name, fmt::format("its shape takes {} bytes, it holds {}", bytes, tensor.bytes.size()));
  }
}

struct RunOp {
  const TensorMap& inputs;
  TensorMap& outputs;
  Accumulate accumulate;
  void operator()(const problem::Quantize& op) const { quantize(op, inputs, outputs); }
  void operator()(const problem::Dequantize& op) const { dequantize(op, inputs, outputs); }
  void operator()(const problem::PackScales& op) const { pack_scales(op, inputs, outputs); }
  void operator()(const problem::PadGroups& op) const { pad_groups(op, inputs, outputs); }
  void operator()(const problem::Gemm& op) const { gemm(op, inputs, outputs, accumulate); }
  void operator()(const problem::Moe& op) const { moe(op, inputs, outputs, accumulate); }
};

}  // namespace

TensorMap run(const problem::Problem& problem, const TensorMap& inputs, Accumulate accumulate) {
  problem::validate(problem);
  TensorMap outputs;
  for (const problem::TensorDecl& tensor : problem::tensors(problem)) {
    if (!tensor.output) {
      check_input(tensor, inputs);
    } else if (!tensor.optional) {  // what a device reports in `status` is an Error here
      outputs.emplace(tensor.name, make_tensor(tensor.dtype, tensor.shape));
    }
  }
  std::visit(RunOp{inputs, outputs, accumulate}, problem.op);
  return outputs;
}

}  // namespace mxjit::reference
