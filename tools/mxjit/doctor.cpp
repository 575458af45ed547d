// mxjit doctor: what is found here, and what that allows.
#include <fmt/format.h>

#include <filesystem>
#include <optional>

#include "cache/cache.hpp"
#include "cache/root.hpp"
#include "compile/nvrtc.hpp"
#include "configure/profile.hpp"
#include "driver/driver.hpp"
#include "mxjit/command.hpp"
#include "mxjit/context.hpp"
#include "mxjit/device.hpp"
#include "mxjit/error.hpp"
#include "mxjit/report.hpp"

namespace mxjit::cli {
namespace {

struct NvrtcState {
  std::string path, build, problem;  // problem: why there is none
};

NvrtcState find_nvrtc(const std::string& override_path) {
  try {
    const auto nvrtc = compile::Nvrtc::open(override_path);
    return {nvrtc->path(), nvrtc->build(), {}};
  } catch (const Error& error) {
    return {{}, {}, error.what()};
  }
}

std::string driver_version() {
  try {
    const driver::Api& api = driver::api();
    int version = 0;
    driver::check(api, api.driver_get_version(&version), "cuDriverGetVersion");
    return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
  } catch (const Error&) {
    return {};
  }
}

// "safe", or why the root is refused. One that does not exist yet is made when it is first needed.
std::string root_safety(const cache::Options& options) {
  try {
    cache::Root(host_files(), options.root->string(), options.trust_root).exists();
    return "safe";
  } catch (const Error& error) {
    return error.what();
  }
}

nlohmann::ordered_json text_or_null(const std::string& text) {
  return text.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(text);
}

/// With what was tried, a line each, under the first.
std::string indented(const std::string& reason) {
  std::string text;
  for (const char c : reason) text += c == '\n' ? std::string("\n         ") : std::string(1, c);
  return text;
}

struct Findings {
  std::string driver, no_gpu;
  std::vector<Gpu> gpus;
  NvrtcState nvrtc;
  cache::Options cache;
  std::string root_safety;

  bool has_gpu() const { return no_gpu.empty(); }
  bool has_nvrtc() const { return nvrtc.problem.empty(); }
  bool can_store() const { return cache.root && root_safety == "safe"; }
};

Findings look(const CommonOptions& common) {
  Findings found;
  found.driver = driver_version();
  found.no_gpu = driver::why_no_gpu();
  found.gpus = gpus();
  found.cache = cache_options(common);
  found.nvrtc = find_nvrtc(found.cache.nvrtc_path);
  if (found.cache.root) found.root_safety = root_safety(found.cache);
  return found;
}

struct Ability {
  const char* name;
  bool possible;
  std::string text;
};

std::vector<Ability> abilities(const Findings& found) {
  const bool compiles = found.has_nvrtc() && !found.cache.forbid_compile;
  const std::string no_compiler = found.has_nvrtc() ? "compilation is forbidden" : "NVRTC is missing";
  return {
      {"run_cpu", true, "run and quantize with --device cpu; emit; explain"},
      {"run_gpu", found.has_gpu(),
       !found.has_gpu() ? "run and quantize on a GPU"
       : compiles       ? "run and quantize on a GPU, any supported problem"
                  : fmt::format("run and quantize on a GPU, from prewarmed kernels only ({})", no_compiler)},
      {"compile", compiles,
       compiles ? "compile kernels for any target" : fmt::format("compile kernels ({})", no_compiler)},
      {"prewarm", compiles && found.can_store(),
       !compiles            ? fmt::format("prewarm a cache ({})", no_compiler)
       : !found.can_store() ? std::string("prewarm a cache (there is no usable root)")
                            : std::string("prewarm a cache")},
  };
}

void print_report(const Findings& found) {
  print(fmt::format("mxjit {}\n\n", version()));
  print(fmt::format("driver   {}\n", found.driver.empty() ? "none" : "CUDA " + found.driver));
  if (!found.has_gpu()) print(fmt::format("GPU      none: {}\n", indented(found.no_gpu)));
  for (const Gpu& gpu : found.gpus)
    print(fmt::format("GPU {}    {}, {}, {} multiprocessors, {}\n", gpu.index, gpu.name, gpu.target,
                      gpu.sm_count, human_bytes(static_cast<double>(gpu.memory_bytes))));
  if (found.has_nvrtc())
    print(fmt::format("NVRTC    {} ({})\n", found.nvrtc.build, found.nvrtc.path));
  else
    print(fmt::format("NVRTC    none: {}\n", indented(found.nvrtc.problem)));
  if (found.cache.root)
    print(fmt::format("root     {} ({}, {})\n", found.cache.root->string(), found.root_safety,
                      std::filesystem::exists(*found.cache.root) ? "exists" : "made when first needed"));
  else
    print("root     none: kernels live in memory only\n");
  for (const auto& layer : found.cache.layers)
    print(fmt::format("layer    {} ({})\n", layer.string(),
                      std::filesystem::exists(layer) ? "read only" : "missing"));
  print("\nThis allows:\n");
  for (const Ability& ability : abilities(found))
    print(fmt::format("  {}  {}\n", ability.possible ? "yes" : "no ", ability.text));
}

nlohmann::ordered_json findings_json(const Findings& found) {
  nlohmann::ordered_json gpu_list = nlohmann::ordered_json::array();
  for (const Gpu& gpu : found.gpus)
    gpu_list.push_back({{"index", gpu.index},
                        {"name", gpu.name},
                        {"target", gpu.target},
                        {"sm_count", gpu.sm_count},
                        {"memory_bytes", gpu.memory_bytes}});
  nlohmann::ordered_json layers = nlohmann::ordered_json::array();
  for (const auto& layer : found.cache.layers)
    layers.push_back({{"path", layer.string()}, {"exists", std::filesystem::exists(layer)}});
  nlohmann::ordered_json root;
  if (found.cache.root)
    root = {
        {"path", found.cache.root->string()},
        {"exists", std::filesystem::exists(*found.cache.root)},
        {"safe", found.can_store()},
        {"reason", found.can_store() ? nlohmann::ordered_json() : nlohmann::ordered_json(found.root_safety)}};
  nlohmann::ordered_json allows = nlohmann::ordered_json::object();
  for (const Ability& ability : abilities(found)) allows[ability.name] = ability.possible;
  return {{"version", version()},
          {"driver", text_or_null(found.driver)},
          {"gpus", gpu_list},
          {"no_gpu", text_or_null(found.no_gpu)},
          {"nvrtc",
           {{"path", text_or_null(found.nvrtc.path)},
            {"version", text_or_null(found.nvrtc.build)},
            {"reason", text_or_null(found.nvrtc.problem)}}},
          {"cache", {{"root", root}, {"layers", layers}, {"forbid_compile", found.cache.forbid_compile}}},
          {"allows", allows}};
}

int doctor(const CommonOptions& common) {
  const Findings found = look(common);
  if (common.json)
    print_json(findings_json(found));
  else
    print_report(found);
  return exit_done;
}

}  // namespace

void add_doctor(CLI::App& app, Invocation& invocation) {
  add_command(app, invocation, "doctor", "Tell what is found here and what that allows",
              "Driver, GPUs, NVRTC, cache root and layers. The exit status is 0 whatever is missing.\n\n"
              "Examples:\n  mxjit doctor\n  mxjit doctor --json",
              doctor);
}

}  // namespace mxjit::cli
