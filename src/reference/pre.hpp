// The fusions that come before a quantization, and the activation that a GEMM's epilogue shares with them.
#pragma once

#include "problem/problem.hpp"
#include "safetensors/host_tensor.hpp"

namespace mxjit::reference {

/// gate * sigmoid(alpha * gate) * up. With a limit L, gpt-oss's form: gate at most L, up within [-L, L], and
/// (up + 1) in place of up.
double swiglu(const problem::Swiglu& parameters, double gate, double up);

/// Columns of gate and up that make output column n of N.
inline std::int64_t gate_column(const problem::Swiglu& p, std::int64_t n) { return p.interleave ? 2 * n : n; }
inline std::int64_t up_column(const problem::Swiglu& p, std::int64_t n, std::int64_t count) {
  return p.interleave ? 2 * n + 1 : count + n;
}

/// The value that is quantized, rounded once to bf16, (M,N) or (E,M,N) row-major: what `emit_high` writes. A
/// fused problem quantizes these rounded values, so that it equals its two steps.
HostTensor apply_pre(const problem::Quantize& op, const TensorMap& inputs);

}  // namespace mxjit::reference
