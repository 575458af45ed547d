// The two scalings of op "quantize", on a source whose fusions have been applied.
#pragma once

#include "problem/problem.hpp"
#include "safetensors/host_tensor.hpp"

namespace mxjit::reference {

/// What is quantized: bf16, fp16 or fp32, E matrices of rows x cols, row-major or each stored transposed.
struct Source {
  const HostTensor& tensor;
  std::int64_t experts;
  std::int64_t rows;
  std::int64_t cols;
  bool transposed;
};

/// One axis of the problem: "col" quantizes the transpose along its rows, so that every axis is written once.
void quantize_mx(const problem::Quantize& op, const Source& source, const TensorMap& inputs, bool col,
                 HostTensor& q, HostTensor& s);
void quantize_fp32(const problem::Quantize& op, const Source& source, const TensorMap& inputs, bool col,
                   HostTensor& q, HostTensor& s);

}  // namespace mxjit::reference
