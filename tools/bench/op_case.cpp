#include "bench/op_case.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "codegen/descriptor.hpp"
#include "configure/configure.hpp"

namespace mxjit::bench {
namespace {

problem::Shape extents(const Sizes& shape) { return {shape.begin(), shape.end()}; }

const char* job_of(Axes axes) { return axes.row && axes.col ? "dual" : (axes.row ? "row" : "col"); }

std::string block_name(Scaling scaling, const Block& block) {
  if (block.kind == Block::Kind::row) return "row_fp8";
  if (block.kind == Block::Kind::tensor) return "tensor_fp8";
  if (scaling == Scaling::mx) return fmt::format("{}x{}", block.rows, block.cols);
  return block.rows == 1 ? "block128" : "block128x128";
}

OpCase make(std::string name, const Sizes& shape, decltype(problem::Problem::op) op) {
  return {std::move(name), problem::with_defaults({"", std::move(op)}), shape, {}, {}};
}

problem::Quantize quantization(const Sizes& shape, Axes axes) {
  problem::Quantize quantize;
  quantize.input.shape = extents(shape);
  quantize.axes = axes;
  return quantize;
}

OpCase with_pre(OpCase one, const problem::Pre& pre, const char* name) {
  problem::Quantize quantize = quantize_of(one);
  quantize.pre = pre;
  one.problem = problem::with_defaults({"", std::move(quantize)});
  one.name = fmt::format("{} {}", name, one.name);
  return one;
}

}  // namespace

OpCase mx_case(const Sizes& shape, Axes axes, Rounding rounding, ScaleLayout layout) {
  problem::Quantize quantize = quantization(shape, axes);
  quantize.recipe.rounding = rounding;
  quantize.recipe.scale_layout = layout;
  return make(fmt::format("{}{} 1x32 {} {}", job_of(axes), shape.size() == 3 ? "3d" : "", to_string(rounding),
                          to_string(layout)),
              shape, std::move(quantize));
}

OpCase fp32_case(const Sizes& shape, Axes axes, const Block& block) {
  problem::Quantize quantize = quantization(shape, axes);
  quantize.recipe.scaling = Scaling::fp32;
  quantize.recipe.rounding = Rounding::none;
  quantize.recipe.block = block;
  return make(fmt::format("{} {}", block_name(Scaling::fp32, block), job_of(axes)), shape,
              std::move(quantize));
}

OpCase grouped_case(const Sizes& shape, Axes axes, ScaleLayout layout, const std::vector<std::int32_t>& ends,
                    int alignment) {
  problem::Quantize quantize = quantization(shape, axes);
  quantize.recipe.scale_layout = layout;
  quantize.groups = problem::MGroups{.count = static_cast<std::int64_t>(ends.size()), .alignment = alignment};
  OpCase made = make(fmt::format("grouped {} 1x32 rceil {}, {} groups, alignment {}", job_of(axes),
                                 to_string(layout), ends.size(), alignment),
                     shape, std::move(quantize));
  made.words["offsets"] = ends;
  return made;
}

OpCase dequantize_case(const Sizes& shape, Scaling scaling, const Block& block, ScaleLayout layout,
                       bool axis_col) {
  problem::Dequantize dequantize;
  dequantize.q.dtype = DType::e4m3;
  dequantize.q.shape = extents(shape);
  dequantize.scaling = scaling;
  dequantize.block = block;
  dequantize.scale_layout = layout;
  dequantize.axis_col = axis_col;
  dequantize.output = DType::bf16;
  return make(fmt::format("dequantize {} {} {}", axis_col ? "col" : "row", block_name(scaling, block),
                          to_string(layout)),
              shape, std::move(dequantize));
}

OpCase pack_case(const Sizes& shape, Placement placement, const std::vector<std::int32_t>& ends,
                 bool unpack) {
  problem::PackScales pack;
  pack.unpack = unpack;
  pack.shape = extents(shape);
  pack.placement = placement;
  std::string name = fmt::format("{} {}", unpack ? "unpack" : "pack", to_string(placement));
  if (!ends.empty()) {
    pack.groups = static_cast<std::int64_t>(ends.size());
    name += fmt::format(", {} groups", ends.size());
  }
  OpCase made = make(std::move(name), shape, std::move(pack));
  if (!ends.empty()) made.words["offsets"] = ends;
  return made;
}

OpCase pad_case(const Sizes& shape, const std::vector<std::int32_t>& ends, std::int64_t alignment,
                bool unpad) {
  problem::PadGroups pad;
  pad.unpad = unpad;
  pad.input.shape = extents(shape);
  pad.groups = static_cast<std::int64_t>(ends.size());
  pad.alignment = alignment;
  OpCase made =
      make(fmt::format("{} to {}, {} groups", unpad ? "unpad" : "pad", alignment, ends.size()), shape, pad);
  made.words["offsets"] = ends;
  if (!unpad) return made;
  std::vector<std::int32_t>& starts = made.words["starts"];
  std::int64_t start = 0;
  for (std::size_t g = 0; g < ends.size(); ++g) {
    starts.push_back(static_cast<std::int32_t>(start));
    const std::int64_t size = ends[g] - (g == 0 ? 0 : ends[g - 1]);
    start += (size + alignment - 1) / alignment * alignment;
  }
  return made;
}

OpCase with_swiglu(OpCase one) { return with_pre(std::move(one), problem::Swiglu{}, "swiglu"); }

OpCase with_rmsnorm(OpCase one) { return with_pre(std::move(one), problem::RmsNorm{}, "rmsnorm"); }

OpCase with_axes(OpCase one, Axes axes) {
  std::get<problem::Quantize>(one.problem.op).axes = axes;
  return one;
}

std::vector<std::int32_t> uneven_ends(std::int64_t count, std::int64_t limit, std::int64_t alignment) {
  const std::int64_t units = limit / alignment;
  const std::int64_t tail = units / 100;  // nobody's
  std::vector<std::int64_t> weights;
  std::int64_t all = 0;
  for (std::int64_t g = 0; g < count; ++g) {
    weights.push_back(count > 16 && g == count / 2 ? 0 : 1 + g * 7919 % 13);
    all += weights.back();
  }
  std::vector<std::int32_t> ends;
  std::int64_t so_far = 0;
  for (const std::int64_t weight : weights) {
    so_far += weight;
    ends.push_back(
        static_cast<std::int32_t>((units - tail) * so_far / std::max<std::int64_t>(all, 1) * alignment));
  }
  return ends;
}

std::vector<problem::TensorDecl> tensors_of(const OpCase& one) {
  std::vector<problem::TensorDecl> decls = problem::tensors(one.problem);
  std::erase_if(decls, [](const problem::TensorDecl& decl) { return decl.optional; });
  return decls;
}

std::int64_t bytes_of(const problem::TensorDecl& decl) {
  auto bytes = static_cast<std::int64_t>(size_of(decl.dtype));
  for (const std::int64_t extent : decl.shape) bytes *= extent;
  return bytes;
}

double moved_bytes(const OpCase& one) {
  double bytes = 0;
  for (const problem::TensorDecl& decl : tensors_of(one)) bytes += static_cast<double>(bytes_of(decl));
  return bytes;
}

std::string place_of(const OpCase& one, const problem::TensorDecl& decl) {
  if (const auto place = one.places.find(decl.name); place != one.places.end()) return place->second;
  if (const auto words = one.words.find(decl.name); words != one.words.end())
    return fmt::format("{} {}", decl.name, fmt::join(words->second, ","));
  return decl.output ? "out " + decl.name : decl.name;
}

std::int64_t workspace_bytes(const OpCase& one) {
  return static_cast<std::int64_t>(dispatch::workspace_size(one.problem));
}

dispatch::DeviceTensors device_tensors(const OpCase& one,
                                       const std::function<void*(const problem::TensorDecl&)>& address) {
  dispatch::DeviceTensors tensors;
  const auto add = [&](const problem::TensorDecl& decl) {
    Tensor& tensor = tensors[decl.name];
    tensor = {.data = address(decl), .dtype = decl.dtype, .rank = static_cast<int>(decl.shape.size())};
    std::ranges::copy(decl.shape, tensor.shape.begin());
  };
  for (const problem::TensorDecl& decl : tensors_of(one)) add(decl);
  if (const std::int64_t bytes = workspace_bytes(one); bytes > 0) {
    problem::TensorDecl workspace;
    workspace.name = dispatch::workspace_name;
    workspace.shape = {bytes};
    add(workspace);
  }
  return tensors;
}

std::function<void(Stream)> prepare(Context& context, const OpCase& one,
                                    const dispatch::DeviceTensors& tensors) {
  if (const auto* quantize = std::get_if<problem::Quantize>(&one.problem.op)) {
    return [&context, call = dispatch::quantize_call(*quantize, tensors)](Stream stream) {
      context.quantize(call.options, call.args, stream);
    };
  }
  return [&context, problem = one.problem, tensors](Stream stream) {
    dispatch::launch_op(context, problem, tensors, stream);
  };
}

std::string configuration_json(const OpCase& one, const configure::Profile& profile) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const configure::Configuration& configuration : configure::configure(one.problem, profile)) {
    all.push_back(
        nlohmann::ordered_json::parse(codegen::print({configuration, std::string(profile.target)})));
  }
  return all.dump();
}

}  // namespace mxjit::bench
