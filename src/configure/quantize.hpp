// Configurations of op "quantize".
#pragma once

#include <vector>

#include "configure/configuration.hpp"
#include "configure/profile.hpp"
#include "problem/problem.hpp"

namespace mxjit::configure {

/// As configure().
std::vector<Configuration> configure_quantize(const problem::Quantize& problem, const Profile& profile);

}  // namespace mxjit::configure
