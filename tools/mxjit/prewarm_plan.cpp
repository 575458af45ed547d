#include "mxjit/prewarm_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "codegen/target.hpp"
#include "mxjit/device.hpp"
#include "mxjit/error.hpp"

namespace mxjit::cli {

namespace {

// One item for a problem and a reason, whatever the targets.
void add_unsupported(std::vector<UnsupportedProblem>& list, const std::string& problem,
                     const std::string& target, const std::string& reason) {
  const auto at = std::find_if(list.begin(), list.end(), [&](const UnsupportedProblem& item) {
    return item.problem == problem && item.reason == reason;
  });
  UnsupportedProblem& item =
      at != list.end() ? *at : list.emplace_back(UnsupportedProblem{problem, {}, reason});
  if (std::find(item.targets.begin(), item.targets.end(), target) == item.targets.end())
    item.targets.push_back(target);
}

}  // namespace

PrewarmPlan plan_prewarm(const std::vector<problem::Problem>& problems,
                         const std::vector<const configure::Profile*>& profiles,
                         const configure::TuningTable& tuning) {
  PrewarmPlan plan;
  std::unordered_map<std::string, std::size_t> index;  // key -> position in plan.kernels
  const auto add = [&](Kernel kernel, const std::string& name, const problem::Problem& problem) {
    const auto [at, is_new] = index.try_emplace(kernel.key, plan.kernels.size());
    if (is_new) plan.kernels.push_back({std::move(kernel), {}, problem::print(problem)});
    std::vector<std::string>& users = plan.kernels[at->second].problems;
    if (std::find(users.begin(), users.end(), name) == users.end()) users.push_back(name);
  };
  for (const configure::Profile* profile : profiles) {
    const std::vector<configure::GemmTuning> tunings = tuning.choices(profile->name);
    for (const problem::Problem& problem : problems) {
      const std::string name = title(problem);
      try {
        for (Kernel& kernel : kernels_of(problem, *profile)) add(std::move(kernel), name, problem);
        for (const configure::GemmTuning& measured : tunings)
          for (Kernel& kernel : kernels_of(problem, *profile, &measured))
            add(std::move(kernel), name, problem);
      } catch (const Error& error) {
        if (error.code() != ErrorCode::unsupported) throw;
        add_unsupported(plan.unsupported, name, std::string(profile->target), error.what());
      }
    }
  }
  return plan;
}

std::vector<const configure::Profile*> prewarm_profiles(const std::string& archs,
                                                        const std::string& profiles) {
  std::vector<std::string> targets;
  if (!archs.empty())
    for (const std::string& arch : split_list(archs, "--arch")) {
      std::string target = codegen::normalize_target(arch);
      if (std::find(targets.begin(), targets.end(), target) == targets.end())
        targets.push_back(std::move(target));
    }
  std::vector<const configure::Profile*> chosen;
  if (!profiles.empty())
    for (const std::string& name : split_list(profiles, "--profile")) {
      const configure::Profile& profile = configure::profile(name);
      if (!targets.empty() && std::find(targets.begin(), targets.end(), profile.target) == targets.end())
        throw Error(ErrorCode::invalid_argument,
                    fmt::format("--profile: {} is of target {}, which --arch {} leaves out", name,
                                profile.target, archs),
                    "--profile");
      chosen.push_back(&profile);
    }
  // A target that no named profile covers gets its default one.
  if (targets.empty() && chosen.empty()) targets.push_back(target_or_default(""));
  for (const std::string& target : targets)
    if (std::none_of(chosen.begin(), chosen.end(),
                     [&](const configure::Profile* profile) { return profile->target == target; }))
      chosen.push_back(&configure::default_profile(target));
  return chosen;
}

}  // namespace mxjit::cli
