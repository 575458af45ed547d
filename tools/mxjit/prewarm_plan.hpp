// What a prewarm has to compile: each kernel once, with the problems that need it.
#pragma once

#include <string>
#include <vector>

#include "configure/profile.hpp"
#include "configure/tuning_table.hpp"
#include "mxjit/kernels.hpp"
#include "problem/problem.hpp"

namespace mxjit::cli {

struct PlannedKernel {
  Kernel kernel;
  std::vector<std::string> problems;  // titles
  std::string problem_json;           // of the first
};

struct UnsupportedProblem {
  std::string problem;  // title
  std::vector<std::string> targets;
  std::string reason;
};

struct PrewarmPlan {
  std::vector<PlannedKernel> kernels;  // in the order of first need
  std::vector<UnsupportedProblem> unsupported;
};

/// What calls can ask for, whether they find the choices of `tuning` or not.
PrewarmPlan plan_prewarm(const std::vector<problem::Problem>& problems,
                         const std::vector<const configure::Profile*>& profiles,
                         const configure::TuningTable& tuning);

/// The profiles that --arch and --profile ask for: those named, else one for each target, else the default
/// target's. Throws Error(invalid_argument) for an unknown name and for a profile of a target that --arch
/// leaves out.
std::vector<const configure::Profile*> prewarm_profiles(const std::string& archs,
                                                        const std::string& profiles);

}  // namespace mxjit::cli
