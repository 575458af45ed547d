// The kernels that a problem needs, as the commands show and compile them.
#pragma once

#include <string>
#include <vector>

#include "cache/cache.hpp"
#include "codegen/descriptor.hpp"
#include "configure/gemm_tuning.hpp"
#include "configure/profile.hpp"
#include "problem/problem.hpp"

namespace mxjit::cli {

struct Kernel {
  codegen::KernelDescriptor descriptor;
  std::string key;  // hex
};

/// In launch order; `tuning`: measured choices, or null. Throws Error(unsupported) for a problem that this
/// version does not execute.
std::vector<Kernel> kernels_of(const problem::Problem& problem, const configure::Profile& profile,
                               const configure::GemmTuning* tuning = nullptr);

/// With what the layers of `cache` hold of measurements on devices as `profile` describes them.
std::vector<Kernel> kernels_of(const problem::Problem& problem, const configure::Profile& profile,
                               cache::Cache& cache);

/// "sm_90a,sm_100a" -> its parts. Throws Error(invalid_argument) for an empty part.
std::vector<std::string> split_list(const std::string& list, const std::string& argument);

/// One line that says what a problem is: its name, or its op and shape.
std::string title(const problem::Problem& problem);

}  // namespace mxjit::cli
