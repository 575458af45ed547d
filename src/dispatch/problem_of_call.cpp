#include "dispatch/problem_of_call.hpp"

#include <cstdint>
#include <optional>
#include <utility>

#include "dispatch/tensor_check.hpp"

namespace mxjit::dispatch {

problem::TensorSpec spec_of(const Tensor& tensor, bool transposed) {
  problem::TensorSpec spec;
  spec.dtype = tensor.dtype;
  const auto rank = static_cast<std::size_t>(tensor.rank);
  for (std::size_t i = 0; i < rank; ++i) spec.shape.emplace_back(tensor.shape[i]);
  if (transposed) std::swap(spec.shape[rank - 1], spec.shape[rank - 2]);
  spec.ld = row_pitch(tensor);
  const std::uint64_t places = reinterpret_cast<std::uintptr_t>(tensor.data) |
                               static_cast<std::uint64_t>(*spec.ld) * size_of_element(tensor.dtype);
  int align = 16;
  while ((places & static_cast<std::uint64_t>(align - 1)) != 0) align /= 2;
  spec.align = align;
  return spec;
}

namespace {

std::optional<problem::OperandScaling> scaling_of(const std::optional<OperandScale>& scale) {
  if (!scale) return std::nullopt;
  return problem::OperandScaling{.kind = scale->scaling, .block = scale->block, .layout = scale->layout};
}

problem::Operand operand_of(const Tensor& tensor, const std::optional<OperandScale>& scale, bool mn_major) {
  return {.tensor = spec_of(tensor, mn_major), .mn_major = mn_major, .scaling = scaling_of(scale)};
}

}  // namespace

problem::Pre pre_of(Pre pre, bool limited) {
  problem::Swiglu swiglu;
  switch (pre) {
    case Pre::swiglu:
    case Pre::swiglu_interleaved:
      swiglu.interleave = pre == Pre::swiglu_interleaved;
      if (limited) swiglu.limit = 1.0;
      return swiglu;
    case Pre::rmsnorm:
      return problem::RmsNorm{};
    case Pre::none:
      break;
  }
  return std::monostate{};
}

problem::Problem problem_of(const QuantizeOptions& options, const QuantizeArgs& args) {
  problem::Quantize quantize;
  quantize.input = spec_of(args.x, options.transposed_input);
  quantize.input_layout = options.transposed_input ? problem::InputLayout::col : problem::InputLayout::row;
  quantize.recipe = {.format = options.format,
                     .scaling = options.scaling,
                     .block = options.block,
                     .rounding = options.rounding,
                     .scale_layout = options.scale_layout,
                     .amax_cap = {}};
  quantize.axes = options.axes;
  quantize.pre = pre_of(options.pre, args.swiglu_limit.has_value());
  quantize.emit_high = options.emit_high;
  if (options.groups.count > 0)
    quantize.groups = problem::MGroups{.count = options.groups.count, .alignment = options.groups.alignment};
  return {.name = {}, .op = quantize};
}

problem::Problem problem_of(const GemmOptions& options, const GemmArgs& args) {
  problem::Gemm gemm;
  gemm.a = operand_of(args.a, options.a_scale, options.a_mn_major);
  gemm.b = operand_of(args.b, options.b_scale, options.b_mn_major);
  const problem::TensorSpec d = spec_of(args.d);
  gemm.d.tensor.dtype = d.dtype;
  gemm.d.tensor.ld = d.ld;
  gemm.d.tensor.align = d.align;
  if (options.requant)
    gemm.d.requant = problem::Recipe{.format = d.dtype,
                                     .scaling = options.requant->scaling,
                                     .block = options.requant->block,
                                     .rounding = options.requant->rounding,
                                     .scale_layout = options.requant->layout,
                                     .amax_cap = {}};
  gemm.d.amax = options.amax;
  if (options.epilogue != Epilogue::none)
    gemm.epilogue = problem::Swiglu{
        .interleave = options.epilogue == Epilogue::swiglu_interleaved, .alpha = 1.0, .limit = {}};
  gemm.batch_invariant = options.batch_invariant;
  gemm.accumulation = options.accumulation;
  if (args.bias.data != nullptr) gemm.bias = args.bias.dtype;
  gemm.beta = args.beta != 0.0F ? 1.0 : 0.0;
  return {.name = {}, .op = gemm};
}

}  // namespace mxjit::dispatch
