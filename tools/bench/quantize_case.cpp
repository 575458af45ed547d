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

}  // namespace

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
  // Parsing fills every default in.
  made.quantize = std::get<problem::Quantize>(problem::parse(problem::print({"", made.quantize})).op);
  const char* job = axes.row && axes.col ? "dual" : (axes.row ? "row" : "col");
  made.name = fmt::format("{}{} 1x32 {} {}", job, shape.size() == 3 ? "3d" : "", to_string(rounding),
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
  return args;
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
