// From the structs of the C ABI to those of the C++ interface.
#pragma once

#include "mxjit/context.hpp"
#include "mxjit/mxjit.h"

namespace mxjit::capi {

// Each throws Error(invalid_argument) naming the field that holds no value of its set, or the struct whose
// size or tail is wrong. Null options are the defaults; null arguments are refused.
ContextOptions context_options(const mxjit_context_options* options);
QuantizeOptions quantize_options(const mxjit_quantize_options* options);
QuantizeArgs quantize_args(const mxjit_quantize_args* args);
GemmOptions gemm_options(const mxjit_gemm_options* options);
GemmArgs gemm_args(const mxjit_gemm_args* args);

}  // namespace mxjit::capi
