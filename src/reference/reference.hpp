// The CPU reference: every problem on the host, plain and scalar, written from the byte contract alone. It is
// the oracle of the tests and the path of `--device cpu`.
#pragma once

#include "problem/problem.hpp"
#include "safetensors/host_tensor.hpp"

namespace mxjit::reference {

/// Runs a concrete problem. Inputs are checked against problem::tensors first; throws Error(invalid_argument)
/// naming the tensor, Error(unsupported) for an op or option it does not execute.
TensorMap run(const problem::Problem& problem, const TensorMap& inputs);

}  // namespace mxjit::reference
