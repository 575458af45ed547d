#include "bench/quantize_case.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "codegen/descriptor.hpp"
#include "configure/configure.hpp"

namespace mxjit::bench {
namespace {

std::int64_t bytes_of(const problem::TensorDecl& decl) {
  std::int64_t bytes = static_cast<std::int64_t>(size_of(decl.dtype));
  for (const std::int64_t extent : decl.shape) bytes *= extent;
  return bytes;
}

void* place_of(const Places& places, const std::string& name) {
  if (name == "x") return places.x;
  if (name == "q_row") return places.q_row;
  if (name == "s_row") return places.s_row;
  return name == "q_col" ? places.q_col : places.s_col;
}

Tensor& argument(QuantizeArgs& args, const std::string& name) {
  if (name == "x") return args.x;
  if (name == "q_row") return args.q_row;
  if (name == "s_row") return args.s_row;
  return name == "q_col" ? args.q_col : args.s_col;
}

// Parsing fills every default in.
void set_defaults(problem::Quantize& quantize) {
  quantize = std::get<problem::Quantize>(problem::parse(problem::print({"", quantize})).op);
}

const char* job_of(Axes axes) { return axes.row && axes.col ? "dual" : (axes.row ? "row" : "col"); }

}  // namespace

QuantizeCase fp32_case(const std::vector<std::int64_t>& shape, Axes axes, const Block& block) {
  QuantizeCase made;
  made.options.axes = made.quantize.axes = axes;
  made.options.scaling = made.quantize.recipe.scaling = Scaling::fp32;
  made.options.rounding = made.quantize.recipe.rounding = Rounding::none;
  made.options.block = made.quantize.recipe.block = block;
  made.quantize.input.shape.assign(shape.begin(), shape.end());
  set_defaults(made.quantize);
  const char* name = block.kind == Block::Kind::row      ? "row_fp8"
                     : block.kind == Block::Kind::tensor ? "tensor_fp8"
                     : block.rows == 1                   ? "block128"
                                                         : "block128x128";
  made.name = fmt::format("{} {}", name, job_of(axes));
  return made;
}

QuantizeCase with_axes(QuantizeCase one, Axes axes) {
  one.options.axes = one.quantize.axes = axes;
  return one;
}

QuantizeCase mx_case(const std::vector<std::int64_t>& shape, Axes axes, Rounding rounding,
                     ScaleLayout layout) {
  QuantizeCase made;
  made.options.axes = axes;
  made.options.rounding = rounding;
  made.options.scale_layout = layout;
  made.quantize.input.shape.assign(shape.begin(), shape.end());
  made.quantize.recipe.rounding = rounding;
  made.quantize.recipe.scale_layout = layout;
  made.quantize.axes = axes;
  set_defaults(made.quantize);
  made.name = fmt::format("{}{} 1x32 {} {}", job_of(axes), shape.size() == 3 ? "3d" : "", to_string(rounding),
                          to_string(layout));
  return made;
}

std::vector<OutputBytes> output_bytes(const QuantizeCase& quantize_case) {
  std::vector<OutputBytes> all;
  for (const problem::TensorDecl& decl : problem::tensors({"", quantize_case.quantize})) {
    if (decl.output && !decl.optional) all.push_back({decl.name, bytes_of(decl)});
  }
  return all;
}

double moved_bytes(const QuantizeCase& quantize_case) {
  double bytes = 0;
  for (const problem::TensorDecl& decl : problem::tensors({"", quantize_case.quantize})) {
    if (!decl.optional) bytes += static_cast<double>(bytes_of(decl));
  }
  return bytes;
}

QuantizeArgs arguments(const QuantizeCase& quantize_case, const Places& places) {
  QuantizeArgs args;
  for (const problem::TensorDecl& decl : problem::tensors({"", quantize_case.quantize})) {
    if (decl.optional) continue;
    Tensor& tensor = argument(args, decl.name);
    tensor.data = place_of(places, decl.name);
    tensor.dtype = decl.dtype;
    tensor.rank = static_cast<int>(decl.shape.size());
    for (std::size_t i = 0; i < decl.shape.size(); ++i) tensor.shape[i] = decl.shape[i];
  }
  if (const auto bytes = static_cast<std::int64_t>(workspace_size(quantize_case.options, args.x)); bytes > 0)
    args.workspace = {.data = places.workspace, .dtype = DType::u8, .rank = 1, .shape = {bytes}};
  return args;
}

std::int64_t workspace_bytes(const QuantizeCase& quantize_case) {
  return arguments(quantize_case, {}).workspace.shape[0];
}

std::string configuration_json(const QuantizeCase& quantize_case, const configure::Profile& profile) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const configure::Configuration& configuration :
       configure::configure({"", quantize_case.quantize}, profile)) {
    all.push_back(
        nlohmann::ordered_json::parse(codegen::print({configuration, std::string(profile.target)})));
  }
  return all.dump();
}

}  // namespace mxjit::bench
