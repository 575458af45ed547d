// A problem on tensors, whatever its op: what the program, the benchmarks and the tests run kernels through.
#pragma once

#include <map>
#include <string>

#include "mxjit/context.hpp"
#include "problem/problem.hpp"
#include "safetensors/host_tensor.hpp"

namespace mxjit::dispatch {

/// Tensors in device memory by the names of problem::tensors.
using DeviceTensors = std::map<std::string, Tensor>;

/// Throws Error(invalid_argument) naming a tensor that is missing.
Tensor take(const DeviceTensors& tensors, const std::string& name);

/// What Context::gemm is called with for a problem.
struct GemmCall {
  GemmOptions options;
  GemmArgs args;
};
/// Throws Error(invalid_argument) naming a tensor that is missing. Leaves out what gemm() does not execute.
GemmCall gemm_call(const problem::Gemm& gemm, const DeviceTensors& tensors);

/// What Context::quantize is called with for a problem.
struct QuantizeCall {
  QuantizeOptions options;
  QuantizeArgs args;
};
/// Throws Error(invalid_argument) naming a tensor that is missing.
QuantizeCall quantize_call(const problem::Quantize& quantize, const DeviceTensors& tensors);

/// The name of the workspace among tensors: u8, 1-D. None is needed where its size is 0.
inline constexpr const char* workspace_name = "workspace";
/// Bytes of workspace that a concrete problem needs.
std::size_t workspace_size(const problem::Problem& problem);

/// Launches a concrete problem on `stream`, asynchronously. Shapes are the stored ones of problem::tensors;
/// pitches are the tensors' own. Throws Error(invalid_argument) naming the tensor, Error(unsupported) for an
/// op or option that has no kernel.
void launch_problem(Context& context, const problem::Problem& problem, const DeviceTensors& tensors,
                    Stream stream);

/// The part of launch_problem that is of the ops of one kernel each; false for another op.
bool launch_op(Context& context, const problem::Problem& problem, const DeviceTensors& tensors,
               Stream stream);

/// Runs a concrete problem on host tensors: allocates, copies, launches and synchronizes a stream of its own.
/// Inputs must be those of problem::tensors, in dtype and shape. Returns every output. Throws as
/// launch_problem does, Error(driver) where memory does not suffice.
TensorMap run_on_device(Context& context, const problem::Problem& problem, const TensorMap& inputs);

}  // namespace mxjit::dispatch
