// Problem -> configuration: the only place that chooses kernels.
#pragma once

#include <vector>

#include "configure/configuration.hpp"
#include "configure/gemm_tuning.hpp"
#include "configure/profile.hpp"
#include "problem/problem.hpp"

namespace mxjit::configure {

/// The kernels that run `problem`, in launch order. Pure; a problem with ranges yields every configuration
/// that a problem inside the ranges can get, without repeats. Throws Error(unsupported) naming the field this
/// version does not execute. `tuning`: measured choices for the device, or null.
std::vector<Configuration> configure(const problem::Problem& problem, const Profile& profile,
                                     const GemmTuning* tuning = nullptr);

}  // namespace mxjit::configure
