// mxjit explain: would this problem be a hit, and if not, why.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>

#include "cache/cache.hpp"
#include "configure/profile.hpp"
#include "mxjit/command.hpp"
#include "mxjit/device.hpp"
#include "mxjit/files.hpp"
#include "mxjit/kernels.hpp"
#include "mxjit/report.hpp"

namespace mxjit::cli {
namespace {

struct ExplainOptions {
  std::string problem, arch;
};

/// Who chose a kernel's tile, and for one problem what was measured.
struct Choice {
  std::string by;  // "model" or "table"; empty where there is nothing to choose
  const configure::TunedGemm* tuned = nullptr;
  std::string gpu;
};

Choice choice_of(const Kernel& kernel, const std::vector<Kernel>& of_model, const problem::Problem& problem,
                 const configure::DeviceTuning* device) {
  if (kernel.descriptor.configuration.kernel != "gemm/dense_fp8") return {};
  const auto same = [&](const Kernel& other) { return other.key == kernel.key; };
  if (std::any_of(of_model.begin(), of_model.end(), same)) return {.by = "model", .gpu = {}};
  Choice choice{.by = "table", .gpu = device->gpu};
  if (!problem::is_concrete(problem)) return choice;
  const problem::Problem whole = problem::with_defaults(problem);
  const auto& gemm = std::get<problem::Gemm>(whole.op);
  const auto found = device->gemm.find(configure::TuningTable::class_of(gemm));
  if (found != device->gemm.end()) choice.tuned = &found->second;
  return choice;
}

nlohmann::ordered_json choice_json(const Choice& choice) {
  nlohmann::ordered_json json = {{"by", choice.by}};
  if (choice.by == "table") json["gpu"] = choice.gpu;
  if (choice.tuned != nullptr) {
    json["us"] = choice.tuned->us;
    json["model_us"] = choice.tuned->model_us;
  }
  return json;
}

void print_choice(const Choice& choice) {
  if (choice.by == "model") print("  tile     chosen by the cost model\n");
  if (choice.by == "table" && choice.tuned == nullptr)
    print(fmt::format("  tile     chosen by the tuning table, measured on {}\n", choice.gpu));
  if (choice.tuned != nullptr)
    print(fmt::format("  tile     chosen by the tuning table: {:.3f} us, the cost model's {:.3f} us, on {}\n",
                      choice.tuned->us, choice.tuned->model_us, choice.gpu));
}

nlohmann::ordered_json explanation_json(const cache::Explanation& e) {
  nlohmann::ordered_json nearest;  // null where the cache holds nothing alike
  if (!e.nearest_key.empty()) nearest = {{"key", e.nearest_key}, {"differs", e.differs}};
  nlohmann::ordered_json json = {{"outcome", e.hit ? "hit" : "miss"}, {"key", e.key}};
  json["layer"] = e.layer.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(e.layer);
  json["build"] = e.build.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(e.build);
  json["nearest"] = std::move(nearest);
  json["reason"] = e.reason;
  return json;
}

void print_text(const std::string& kernel, const cache::Explanation& e) {
  print(fmt::format("{}  {}  {}\n  {}\n", e.hit ? "hit " : "miss", e.key, kernel, e.reason));
  if (!e.layer.empty()) print(fmt::format("  layer    {}\n", e.layer));
  if (!e.build.empty()) print(fmt::format("  build    NVRTC {}\n", e.build));
  if (!e.nearest_key.empty())
    print(fmt::format("  nearest  {}\n  differs  {}\n", e.nearest_key, fmt::join(e.differs, ", ")));
}

int explain(const ExplainOptions& options, const CommonOptions& common) {
  const problem::Problem problem = load_problem(options.problem);
  const configure::Profile& profile = configure::default_profile(target_or_default(options.arch));
  cache::Cache cache(cache_options(common));
  const std::vector<Kernel> kernels = kernels_of(problem, profile, cache),
                            of_model = kernels_of(problem, profile);
  const auto tuning = cache.tuning();
  const auto device = tuning->devices.find({std::string(profile.name), profile.sm_count});
  std::vector<cache::Explanation> explanations;
  std::vector<Choice> choices;
  for (const Kernel& kernel : kernels) {
    explanations.push_back(cache.explain(kernel.descriptor));
    choices.push_back(
        choice_of(kernel, of_model, problem, device == tuning->devices.end() ? nullptr : &device->second));
  }

  if (!common.json) {
    for (std::size_t i = 0; i < kernels.size(); ++i) {
      print_text(kernels[i].descriptor.configuration.kernel, explanations[i]);
      print_choice(choices[i]);
    }
    if (kernels.empty()) print("hit   no kernel is needed\n");
    return exit_done;
  }
  // The document describes the first kernel that is missing, else the first; "kernels" describes each.
  nlohmann::ordered_json document = {
      {"outcome", "hit"}, {"key", nullptr}, {"layer", nullptr}, {"nearest", nullptr}};
  const auto missing = std::find_if(explanations.begin(), explanations.end(),
                                    [](const cache::Explanation& e) { return !e.hit; });
  if (!explanations.empty())
    document = explanation_json(missing != explanations.end() ? *missing : explanations.front());
  document["kernels"] = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    nlohmann::ordered_json item = explanation_json(explanations[i]);
    item["kernel"] = kernels[i].descriptor.configuration.kernel;
    if (!choices[i].by.empty()) item["tile"] = choice_json(choices[i]);
    document["kernels"].push_back(std::move(item));
  }
  print_json(document);
  return exit_done;
}

}  // namespace

void add_explain(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<ExplainOptions>();
  CLI::App* command =
      add_command(app, invocation, "explain", "Say whether a problem's kernels are in the cache, and why",
                  "Hit or miss, the layer that holds the kernel, its key, and on a miss the nearest entry "
                  "and the fields\n"
                  "of its descriptor that differ; of a GEMM on tensor cores whether the cost model or the "
                  "tuning table\n"
                  "chose its tile. Nothing is compiled; the exit status is 0 either way.\n\n"
                  "Examples:\n"
                  "  mxjit explain quantize.json\n"
                  "  mxjit explain quantize.json --arch sm_90a --cache /srv/mxjit --json",
                  [options](const CommonOptions& common) { return explain(*options, common); });
  command->add_option("PROBLEM", options->problem, "Problem file (JSON)")->required();
  add_arch_option(*command, options->arch);
}

}  // namespace mxjit::cli
