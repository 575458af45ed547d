// The kernels that a problem needs, as the commands show and compile them.
#pragma once

#include <string>
#include <vector>

#include "codegen/descriptor.hpp"
#include "configure/profile.hpp"
#include "problem/problem.hpp"

namespace mxjit::cli {

struct Kernel {
  codegen::KernelDescriptor descriptor;
  std::string key;  // hex
};

/// In launch order. Throws Error(unsupported) for a problem that this version does not execute.
std::vector<Kernel> kernels_of(const problem::Problem& problem, const configure::Profile& profile);

/// "sm_90a,sm_100a" -> its parts. Throws Error(invalid_argument) for an empty part.
std::vector<std::string> split_list(const std::string& text, const std::string& argument);

/// One line that says what a problem is: its name, or its op and shape.
std::string title(const problem::Problem& problem);

}  // namespace mxjit::cli
