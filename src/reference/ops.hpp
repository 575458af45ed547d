// The ops of the reference, one function each. `inputs` are checked already; `outputs` holds a zeroed tensor
// for every output that the problem declares.
#pragma once

#include "problem/problem.hpp"
#include "reference/reference.hpp"
#include "safetensors/host_tensor.hpp"

namespace mxjit::reference {

void quantize(const problem::Quantize& op, const TensorMap& inputs, TensorMap& outputs);
void dequantize(const problem::Dequantize& op, const TensorMap& inputs, TensorMap& outputs);
void pack_scales(const problem::PackScales& op, const TensorMap& inputs, TensorMap& outputs);
void pad_groups(const problem::PadGroups& op, const TensorMap& inputs, TensorMap& outputs);
void gemm(const problem::Gemm& op, const TensorMap& inputs, TensorMap& outputs, Accumulate accumulate);
void moe(const problem::Moe& op, const TensorMap& inputs, TensorMap& outputs, Accumulate accumulate);

}  // namespace mxjit::reference
