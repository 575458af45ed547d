#include "dispatch/run.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "configure/configure.hpp"
#include "dispatch/context_state.hpp"
#include "driver/device_buffer.hpp"
#include "mxjit/error.hpp"

namespace mxjit::dispatch {

Tensor take(const DeviceTensors& tensors, const std::string& name) {
  const auto found = tensors.find(name);
  if (found == tensors.end())
    throw Error(ErrorCode::invalid_argument, fmt::format("{}: expected a tensor, got none", name), name);
  return found->second;
}

namespace {

QuantizeOptions quantize_options(const problem::Quantize& quantize) {
  QuantizeOptions options;
  options.format = quantize.recipe.format;
  options.scaling = quantize.recipe.scaling;
  options.block = quantize.recipe.block;
  options.rounding = quantize.recipe.rounding;
  options.scale_layout = quantize.recipe.scale_layout;
  options.axes = quantize.axes;
  options.transposed_input = quantize.input_layout == problem::InputLayout::col;
  options.emit_high = quantize.emit_high;
  if (const auto* swiglu = std::get_if<problem::Swiglu>(&quantize.pre))
    options.pre = swiglu->interleave ? Pre::swiglu_interleaved : Pre::swiglu;
  if (std::holds_alternative<problem::RmsNorm>(quantize.pre)) options.pre = Pre::rmsnorm;
  if (quantize.groups) {
    options.groups = {.count = static_cast<std::int32_t>(quantize.groups->count),
                      .alignment = quantize.groups->alignment};
  }
  return options;
}

std::optional<OperandScale> scale_of(const problem::Operand& operand) {
  if (!operand.scaling) return std::nullopt;
  const auto& [kind, block, layout] = *operand.scaling;
  return OperandScale{.scaling = kind, .block = block, .layout = layout};
}

// The bytes of `inputs` that `decl` names. Checked here, where the copy to the device reads them.
const HostTensor& checked_input(const problem::TensorDecl& decl, const TensorMap& inputs) {
  const auto found = inputs.find(decl.name);
  if (found == inputs.end())
    throw Error(ErrorCode::invalid_argument, fmt::format("{}: expected a tensor, got none", decl.name),
                decl.name);
  const HostTensor& tensor = found->second;
  const auto is = [](const auto& value) { return [&](const auto& other) { return other == value; }; };
  const bool dtype = tensor.dtype == decl.dtype || std::ranges::any_of(decl.also_dtypes, is(tensor.dtype));
  const bool shape = tensor.shape == decl.shape || std::ranges::any_of(decl.also_shapes, is(tensor.shape));
  const auto size = static_cast<std::size_t>(tensor.elements()) * size_of(tensor.dtype);
  if (!dtype || !shape || tensor.bytes.size() != size)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: expected {} ({}), got {} ({}) of {} bytes", decl.name, to_string(decl.dtype),
                            fmt::join(decl.shape, ", "), to_string(tensor.dtype),
                            fmt::join(tensor.shape, ", "), tensor.bytes.size()),
                decl.name);
  return tensor;
}

Tensor describe(DType dtype, const std::vector<std::int64_t>& shape, void* data) {
  Tensor tensor{.data = data, .dtype = dtype, .rank = static_cast<int>(shape.size())};
  if (shape.size() > tensor.shape.size())
    throw Error(ErrorCode::unsupported, fmt::format("tensors of rank {}", shape.size()));
  std::ranges::copy(shape, tensor.shape.begin());
  return tensor;
}

}  // namespace

QuantizeCall quantize_call(const problem::Quantize& quantize, const DeviceTensors& tensors) {
  QuantizeCall call{quantize_options(quantize), {}};
  const QuantizeOptions& options = call.options;
  QuantizeArgs& args = call.args;
  args.x = take(tensors, "x");
  if (options.axes.row) {
    args.q_row = take(tensors, "q_row");
    args.s_row = take(tensors, "s_row");
  }
  if (options.axes.col) {
    args.q_col = take(tensors, "q_col");
    args.s_col = take(tensors, "s_col");
  }
  if (quantize.groups) {
    args.offsets = take(tensors, "offsets");
    if (tensors.contains("status")) args.status = take(tensors, "status");
  }
  // A cap that fp32 has no number for is the least there is, not none.
  if (quantize.recipe.amax_cap)
    args.amax_cap =
        std::max(static_cast<float>(*quantize.recipe.amax_cap), std::numeric_limits<float>::denorm_min());
  if (quantize.emit_high) args.y = take(tensors, "y");
  if (const auto* swiglu = std::get_if<problem::Swiglu>(&quantize.pre)) {
    args.swiglu_alpha = swiglu->alpha;
    args.swiglu_limit = swiglu->limit;
  }
  if (const auto* norm = std::get_if<problem::RmsNorm>(&quantize.pre)) {
    args.weight = take(tensors, "weight");
    args.rms_eps = norm->eps;
  }
  if (tensors.contains(workspace_name)) args.workspace = take(tensors, workspace_name);
  return call;
}

GemmCall gemm_call(const problem::Gemm& gemm, const DeviceTensors& tensors) {
  GemmCall call;
  call.options.a_scale = scale_of(gemm.a);
  call.options.b_scale = scale_of(gemm.b);
  call.options.a_mn_major = gemm.a.mn_major;
  call.options.b_mn_major = gemm.b.mn_major;
  call.options.accumulation = gemm.accumulation;
  call.options.output = gemm.d.tensor.dtype;
  call.options.amax = gemm.d.amax;
  call.options.batch_invariant = gemm.batch_invariant;
  call.args.a = take(tensors, "a");
  call.args.b = take(tensors, "b");
  call.args.d = take(tensors, "d");
  if (call.options.a_scale) call.args.a_scale = take(tensors, "a_scale");
  if (call.options.b_scale) call.args.b_scale = take(tensors, "b_scale");
  if (gemm.beta != 0.0) call.args.c = take(tensors, "c");
  if (gemm.bias) call.args.bias = take(tensors, "bias");
  if (gemm.d.requant) {
    const problem::Recipe& recipe = *gemm.d.requant;
    call.options.requant = Requant{.scaling = recipe.scaling,
                                   .block = recipe.block,
                                   .rounding = recipe.rounding,
                                   .layout = recipe.scale_layout};
    call.args.d_scales = take(tensors, "d_scales");
    if (recipe.amax_cap) call.args.amax_cap = static_cast<float>(*recipe.amax_cap);
  } else if (gemm.d.tensor.dtype == DType::e4m3) {
    call.args.d_scale = take(tensors, "d_scale");
  }
  if (gemm.d.amax) call.args.amax = take(tensors, "amax");
  if (gemm.epilogue) {
    call.options.epilogue = gemm.epilogue->interleave ? Epilogue::swiglu_interleaved : Epilogue::swiglu;
    call.args.swiglu_alpha = static_cast<float>(gemm.epilogue->alpha);
    if (gemm.epilogue->limit) call.args.swiglu_limit = static_cast<float>(*gemm.epilogue->limit);
  }
  call.args.alpha = static_cast<float>(gemm.alpha);
  call.args.beta = static_cast<float>(gemm.beta);
  return call;
}

std::size_t workspace_size(const problem::Problem& problem) {
  const auto* quantize = std::get_if<problem::Quantize>(&problem.op);
  if (quantize == nullptr) return 0;
  for (const problem::TensorDecl& decl : problem::tensors(problem))
    if (decl.name == "x")
      return mxjit::workspace_size(quantize_options(*quantize), describe(decl.dtype, decl.shape, nullptr));
  return 0;
}

void launch_problem(Context& context, const problem::Problem& problem, const DeviceTensors& tensors,
                    Stream stream) {
  // Refuses, with the field's name, what has no kernel.
  configure::configure(problem, ContextAccess::state(context).profile);
  if (const auto* quantize = std::get_if<problem::Quantize>(&problem.op)) {
    const QuantizeCall call = quantize_call(*quantize, tensors);
    return context.quantize(call.options, call.args, stream);
  }
  if (const auto* gemm = std::get_if<problem::Gemm>(&problem.op)) {
    const GemmCall call = gemm_call(*gemm, tensors);
    return context.gemm(call.options, call.args, stream);
  }
  if (launch_op(context, problem, tensors, stream)) return;
  throw Error(ErrorCode::unsupported, fmt::format("op \"{}\" has no launch", problem::op_name(problem)),
              "/op");
}

TensorMap run_on_device(Context& context, const problem::Problem& problem, const TensorMap& inputs) {
  const driver::DeviceContext& device = *ContextAccess::state(context).device;
  configure::configure(problem, ContextAccess::state(context).profile);  // before any memory is taken
  const driver::ScopedCurrent scope(device);
  const driver::Api& api = device.api();
  const driver::OwnedStream stream = driver::make_stream(api);

  std::map<std::string, driver::DeviceBuffer> buffers;
  DeviceTensors tensors;
  TensorMap outputs;
  for (const problem::TensorDecl& decl : problem::tensors(problem)) {
    if (decl.optional && (decl.output || !inputs.contains(decl.name))) continue;
    if (!decl.output) {
      const HostTensor& input = checked_input(decl, inputs);
      driver::DeviceBuffer buffer(api, input.bytes.size());
      buffer.write(input.bytes.data(), input.bytes.size(), stream.get());
      tensors[decl.name] = describe(input.dtype, input.shape, buffer.data());
      buffers[decl.name] = std::move(buffer);
      continue;
    }
    HostTensor output{.dtype = decl.dtype, .shape = decl.shape, .bytes = {}};
    output.bytes.resize(static_cast<std::size_t>(output.elements()) * size_of(decl.dtype));
    driver::DeviceBuffer buffer(api, output.bytes.size());
    tensors[decl.name] = describe(decl.dtype, decl.shape, buffer.data());
    buffers[decl.name] = std::move(buffer);
    outputs[decl.name] = std::move(output);
  }
  const std::size_t workspace_bytes = workspace_size(problem);
  const driver::DeviceBuffer workspace(api, workspace_bytes);
  tensors[workspace_name] =
      describe(DType::u8, {static_cast<std::int64_t>(workspace_bytes)}, workspace.data());
  launch_problem(context, problem, tensors, stream.get());
  for (auto& [name, output] : outputs)
    buffers[name].read(output.bytes.data(), output.bytes.size(), stream.get());
  driver::check(api, api.stream_synchronize(stream.get()), "cuStreamSynchronize");
  return outputs;
}

}  // namespace mxjit::dispatch
