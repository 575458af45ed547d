// A trace: the problems that processes asked for, in canonical form, one a line.
#pragma once

#include <string_view>
#include <vector>

#include "problem/problem.hpp"

namespace mxjit::problem {

/// The problems of a trace in their order, each once. Empty lines are left out. Throws
/// Error(invalid_argument) that names the line, counted from 1, and the field.
std::vector<Problem> parse_trace(std::string_view text);

}  // namespace mxjit::problem
