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
DequantizeOptions dequantize_options(const mxjit_dequantize_options* options);
DequantizeArgs dequantize_args(const mxjit_dequantize_args* args);
PackScalesOptions pack_scales_options(const mxjit_pack_scales_options* options);
PackScalesArgs pack_scales_args(const mxjit_pack_scales_args* args);
PadGroupsOptions pad_groups_options(const mxjit_pad_groups_options* options);  // null is refused
PadGroupsArgs pad_groups_args(const mxjit_pad_groups_args* args);
UnpadGroupsArgs unpad_groups_args(const mxjit_unpad_groups_args* args);

}  // namespace mxjit::capi
