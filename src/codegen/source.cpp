#include <fmt/format.h>

#include <limits>

#include "codegen/descriptor.hpp"

namespace mxjit::codegen {
namespace {

using configure::Constant;

std::string declare(std::string_view name, const Constant& value) {
  if (const auto* flag = std::get_if<bool>(&value)) {
    return fmt::format("  static constexpr bool {} = {};\n", name, *flag);
  }
  if (const auto* number = std::get_if<std::int64_t>(&value)) {
    // The least 64-bit value has no literal of its own.
    if (*number == std::numeric_limits<std::int64_t>::min()) {
      return fmt::format("  static constexpr long long {} = -9223372036854775807 - 1;\n", name);
    }
    const bool wide = *number != static_cast<std::int32_t>(*number);
    return fmt::format("  static constexpr {} {} = {};\n", wide ? "long long" : "int", name, *number);
  }
  return fmt::format("  static constexpr auto {} = {};\n", name, std::get<std::string>(value));
}

// "quantize/mx_dual" -> "QuantizeMxDual"
std::string struct_name(std::string_view kernel) {
  std::string name;
  bool capital = true;
  for (const char c : kernel) {
    if (c == '/' || c == '_') {
      capital = true;
      continue;
    }
    name += capital && c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    capital = false;
  }
  return name;
}

}  // namespace

std::string symbol(const KernelDescriptor& descriptor) {
  std::string name = "mxjit_" + descriptor.configuration.kernel;
  for (char& c : name) {
    if (c == '/') c = '_';
  }
  return name;
}

std::string generate_source(const KernelDescriptor& descriptor) {
  const std::string text = print(descriptor);  // also refuses what is no descriptor
  const configure::Configuration& configuration = descriptor.configuration;
  std::string constants;
  for (const auto& [name, value] : configuration.constants) constants += declare(name, value);
  constants += declare("threads", std::int64_t{configuration.threads});
  constants += declare("shared_bytes", std::int64_t{configuration.shared_bytes});
  constants += declare("cluster", std::int64_t{configuration.cluster});
  const std::string kernel = struct_name(configuration.kernel);
  return fmt::format(
      "// Generated for {target} by mxjit from one template and one configuration:\n"
      "// {descriptor}\n"
      "#include \"{include}.cuh\"\n"
      "#include \"launch/entry.cuh\"\n"
      "\n"
      "namespace mxjit {{\n"
      "\n"
      "struct Config {{\n"
      "{constants}"
      "}};\n"
      "\n"
      "}}  // namespace mxjit\n"
      "\n"
      "extern \"C\" __global__ void __launch_bounds__({threads}, {min_blocks})\n"
      "{symbol}(const __grid_constant__ mxjit::{kernel}::Params params) {{\n"
      "  mxjit::enter<mxjit::{kernel}, mxjit::Config>(params);\n"
      "}}\n",
      fmt::arg("target", descriptor.target), fmt::arg("descriptor", text),
      fmt::arg("include", configuration.kernel), fmt::arg("constants", constants),
      fmt::arg("threads", configuration.threads), fmt::arg("min_blocks", configuration.min_blocks),
      fmt::arg("symbol", symbol(descriptor)), fmt::arg("kernel", kernel));
}

std::vector<std::string> compile_options(const KernelDescriptor& descriptor) {
  return {
      "--gpu-architecture=" + descriptor.target, "--std=c++20",
      "--device-as-default-execution-space",  // constexpr helpers need no attribute
      "--ptxas-options=-v",                   // registers and spills, in the log
  };
}

}  // namespace mxjit::codegen
