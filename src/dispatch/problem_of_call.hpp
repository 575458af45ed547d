// The problem that a call is: what a trace records of it.
#pragma once

#include "mxjit/gemm.hpp"
#include "mxjit/quantize.hpp"
#include "problem/problem.hpp"

namespace mxjit::dispatch {

/// A checked tensor with its pitch and alignment as promises. `transposed`: the last two extents lie in
/// memory the other way round than the problem names them.
problem::TensorSpec spec_of(const Tensor& tensor, bool transposed = false);

/// Values select no kernel: a limit is 1, the others have their defaults.
problem::Pre pre_of(Pre pre, bool limited);

/// Of a checked call: its extents, and the pitches and alignments of its tensors as promises.
problem::Problem problem_of(const QuantizeOptions& options, const QuantizeArgs& args);
/// Values select no kernel: alpha is 1, beta 0 or 1.
problem::Problem problem_of(const GemmOptions& options, const GemmArgs& args);

}  // namespace mxjit::dispatch
