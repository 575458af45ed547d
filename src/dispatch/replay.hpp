// A problem launched for the sake of what it takes, not of its result: drills and tests.
#pragma once

#include "mxjit/context.hpp"
#include "problem/problem.hpp"

namespace mxjit::dispatch {

/// Launches a concrete problem once on tensors of its own, placed exactly as it promises (pitches and
/// alignments select kernels) and zeroed, and waits for it. Throws as launch_problem does, Error(driver)
/// where memory does not suffice.
void replay(Context& context, const problem::Problem& given);

}  // namespace mxjit::dispatch
