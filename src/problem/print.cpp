// Problem -> canonical JSON: one line, sorted keys (nlohmann's object is an ordered map), every default
// written out.
#include "problem/problem.hpp"
#include "problem/vocabulary.hpp"

namespace mxjit::problem {

using nlohmann::json;

namespace {

json write(const Extent& extent) {
  if (extent.is_range()) return {{"max", extent.max}, {"min", extent.min}};
  return extent.min;
}

json write(const Shape& shape) {
  json array = json::array();
  for (const Extent& extent : shape) array.push_back(write(extent));
  return array;
}

template <class T>
json write(const std::optional<T>& value) {
  return value ? json(*value) : json(nullptr);
}

template <class Tensor>
void write_pitch(json& object, const Tensor& tensor) {
  object["ld"] = write(tensor.ld);
  object["align"] = write(tensor.align);
}

json write(const TensorSpec& tensor) {
  json object{{"dtype", to_string(tensor.dtype)}, {"shape", write(tensor.shape)}};
  write_pitch(object, tensor);
  return object;
}

json write(DType dtype, const Pitch& pitch) {
  json object{{"dtype", to_string(dtype)}};
  write_pitch(object, pitch);
  return object;
}

void write_recipe(json& object, const Recipe& recipe) {
  object["format"] = to_string(recipe.format);
  object["scaling"] = to_string(recipe.scaling);
  object["block"] = block_json(recipe.block);
  object["rounding"] = to_string(recipe.rounding);
  object["scale_layout"] = to_string(recipe.scale_layout);
  object["amax_cap"] = write(recipe.amax_cap);
}

json write(const Recipe& recipe) {
  json object = json::object();
  write_recipe(object, recipe);
  return object;
}

json write(const Swiglu& swiglu) {
  return {{"kind", "swiglu"},
          {"interleave", swiglu.interleave},
          {"alpha", swiglu.alpha},
          {"limit", write(swiglu.limit)}};
}

json write(const Pre& pre) {
  if (const auto* swiglu = std::get_if<Swiglu>(&pre)) return write(*swiglu);
  if (const auto* norm = std::get_if<RmsNorm>(&pre)) return {{"kind", "rmsnorm"}, {"eps", norm->eps}};
  return nullptr;
}

json write(const std::optional<MGroups>& groups) {
  if (!groups) return nullptr;
  return {{"count", groups->count}, {"axis", "m"}, {"alignment", groups->alignment}};
}

json write(const Quantize& op) {
  json axes = json::array();
  if (op.axes.row) axes.push_back("row");
  if (op.axes.col) axes.push_back("col");
  json object{{"input", write(op.input)},
              {"axes", std::move(axes)},
              {"groups", write(op.groups)},
              {"pre", write(op.pre)},
              {"emit_high", op.emit_high}};
  object["input"]["layout"] = to_string(op.input_layout);
  write_recipe(object, op.recipe);
  return object;
}

json write(const Dequantize& op) {
  return {{"q", write(op.q)},
          {"scaling", to_string(op.scaling)},
          {"block", block_json(op.block)},
          {"scale_layout", to_string(op.scale_layout)},
          {"axis", op.axis_col ? "col" : "row"},
          {"groups", write(op.groups)},
          {"output", write(op.output, op.output_pitch)}};
}

json write(const PackScales& op) {
  json scales{{"shape", write(op.shape)}};
  write_pitch(scales, op.pitch);
  return {{"scales", std::move(scales)},
          {"placement", to_string(op.placement)},
          {"groups", op.groups ? json{{"count", *op.groups}} : json(nullptr)}};
}

json write(const PadGroups& op) {
  return {{"input", write(op.input)}, {"groups", {{"count", op.groups}}}, {"alignment", op.alignment}};
}

json write(const Operand& operand) {
  json object = write(operand.tensor);
  object["major"] = operand.mn_major ? "mn" : "k";
  object["scaling"] = nullptr;
  if (operand.scaling) {
    object["scaling"] = {{"kind", to_string(operand.scaling->kind)},
                         {"block", block_json(operand.scaling->block)},
                         {"layout", to_string(operand.scaling->layout)}};
  }
  return object;
}

json write(const GemmOutput& d) {
  json object{{"dtype", to_string(d.tensor.dtype)},
              {"requant", d.requant ? write(*d.requant) : json(nullptr)},
              {"amax", d.amax}};
  write_pitch(object, d.tensor);
  return object;
}

json write(const Gemm& op) {
  json object{{"a", write(op.a)},
              {"b", write(op.b)},
              {"d", write(op.d)},
              {"accumulation", to_string(op.accumulation)},
              {"bias", op.bias ? write(*op.bias, op.bias_pitch) : json(nullptr)},
              {"alpha", op.alpha},
              {"beta", op.beta},
              {"groups", nullptr},
              {"tail", op.tail_keep ? "keep" : "zero"},
              {"epilogue", op.epilogue ? write(*op.epilogue) : json(nullptr)},
              {"deterministic", op.deterministic},
              {"batch_invariant", op.batch_invariant}};
  if (op.groups) object["groups"] = {{"kind", to_string(op.groups->kind)}, {"count", op.groups->count}};
  return object;
}

json write(const Moe& op) {
  return {{"tokens", write(op.tokens)},
          {"hidden", write(op.hidden)},
          {"intermediate", write(op.intermediate)},
          {"experts", op.experts},
          {"top_k", op.top_k},
          {"local_experts", json::array({op.first_local, op.local_count})},
          {"weights", write(op.weights)},
          {"activations", write(op.activations)},
          {"activation", write(op.activation)},
          {"routing_weight_on", op.weight_on_input ? "input" : "output"},
          {"d", write(op.d, op.d_pitch)}};
}

}  // namespace

std::string print(const Problem& problem) {
  validate(problem);
  const Problem full = with_defaults(problem);
  json object = std::visit([](const auto& op) { return write(op); }, full.op);
  object["schema"] = 1;
  object["op"] = op_name(full);
  object["name"] = full.name;
  return object.dump();
}

}  // namespace mxjit::problem
