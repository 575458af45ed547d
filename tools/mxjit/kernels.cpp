#include "mxjit/kernels.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <variant>

#include "configure/configure.hpp"
#include "mxjit/error.hpp"

namespace mxjit::cli {
namespace {

std::string text(const problem::Extent& extent) {
  return extent.is_range() ? fmt::format("{}..{}", extent.min, extent.max) : fmt::format("{}", extent.min);
}

std::string text(const problem::Shape& shape) {
  std::vector<std::string> extents;
  for (const problem::Extent& extent : shape) extents.push_back(text(extent));
  return fmt::format("{}", fmt::join(extents, "x"));
}

struct ShapeText {
  std::string operator()(const problem::Quantize& op) const { return text(op.input.shape); }
  std::string operator()(const problem::Dequantize& op) const { return text(op.q.shape); }
  std::string operator()(const problem::PackScales& op) const { return text(op.shape); }
  std::string operator()(const problem::PadGroups& op) const { return text(op.input.shape); }
  std::string operator()(const problem::Gemm& op) const {
    return fmt::format("{} by {}", text(op.a.tensor.shape), text(op.b.tensor.shape));
  }
  std::string operator()(const problem::Moe& op) const {
    return fmt::format("{}x{}x{}", text(op.tokens), text(op.hidden), text(op.intermediate));
  }
};

}  // namespace

std::vector<Kernel> kernels_of(const problem::Problem& problem, const configure::Profile& profile,
                               const configure::GemmTuning* tuning) {
  std::vector<Kernel> kernels;
  for (configure::Configuration& configuration : configure::configure(problem, profile, tuning)) {
    codegen::KernelDescriptor descriptor{std::move(configuration), std::string(profile.target)};
    std::string key = to_hex(codegen::key(descriptor));
    kernels.push_back({std::move(descriptor), std::move(key)});
  }
  return kernels;
}

std::vector<Kernel> kernels_of(const problem::Problem& problem, const configure::Profile& profile,
                               cache::Cache& cache) {
  const configure::GemmTuning tuning = cache.choices(profile, profile.sm_count);
  return kernels_of(problem, profile, &tuning);
}

std::vector<std::string> split_list(const std::string& list, const std::string& argument) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  while (true) {
    const std::size_t comma = list.find(',', begin);
    std::string part = list.substr(begin, comma == std::string::npos ? comma : comma - begin);
    if (part.empty())
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format("{}: \"{}\" has an empty part; names separated by commas are expected", argument, list),
          argument);
    parts.push_back(std::move(part));
    if (comma == std::string::npos) return parts;
    begin = comma + 1;
  }
}

std::string title(const problem::Problem& problem) {
  if (!problem.name.empty()) return problem.name;
  return fmt::format("{} {}", problem::op_name(problem), std::visit(ShapeText{}, problem.op));
}

}  // namespace mxjit::cli
