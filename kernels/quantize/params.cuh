// Launch parameters of the quantize kernels. Included by the device templates and by the host code that
// launches them.
#pragma once

#include "ptx/types.cuh"

namespace mxjit {

/// By value, as the first kernel parameter; TMA kernels take their tensor maps after it.
struct QuantizeMxParams {
  const void* x;
  u8* q_row;
  u8* s_row;
  u8* q_col;
  u8* s_col;
  i64 m;  // logical extents of x
  i64 n;
  i64 ld_x;  // row pitches in elements
  i64 ld_q_row;
  i64 ld_q_col;
};

}  // namespace mxjit
