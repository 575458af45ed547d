// Loading what problems need, on a GPU.
#pragma once

#include <cstdint>
#include <vector>

#include "mxjit/context.hpp"
#include "problem/problem.hpp"

namespace mxjit::cli {

/// Loads every kernel that `problems` can need on the context, compiling what no layer has; returns how many.
/// Problems that have no kernel are left out.
std::uint64_t load_kernels(Context& context, const std::vector<problem::Problem>& problems);

}  // namespace mxjit::cli
