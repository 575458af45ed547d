// The CPU reference: every problem on the host, plain and scalar, written from the byte contract alone. It is
// the oracle of the tests and the path of `--device cpu`.
#pragma once

#include "problem/problem.hpp"
#include "safetensors/host_tensor.hpp"

namespace mxjit::reference {

/// What a GEMM adds its products up in, in the order of the contraction.
enum class Accumulate : std::uint8_t { fp64, fp32 };

/// Runs a concrete problem. Inputs are checked against problem::tensors first; throws Error(invalid_argument)
/// naming the tensor, Error(unsupported) for an op or option it does not execute. Offsets that fall, leave
/// their range or break their alignment are an Error(invalid_argument) here, so that no `status` is returned.
/// Rows under tail "keep" are zero.
TensorMap run(const problem::Problem& problem, const TensorMap& inputs,
              Accumulate accumulate = Accumulate::fp64);

}  // namespace mxjit::reference
