// Launch parameters of the quantize kernels. Included by the device templates and by the host code that
// launches them.
#pragma once

#include "ptx/types.cuh"

namespace mxjit {

/// One row-major matrix x of m x n elements. "row" outputs have blocks along its rows, "col" outputs have blocks
/// down its columns and are stored transposed. A pitch is the distance between two rows, in elements.
struct QuantizeMxParams {
  const void* x;
  u8* q_row;  // (m, n)
  u8* s_row;  // plain (m, blocks of n); blocked: 512-byte tiles
  u8* q_col;  // (n, m)
  u8* s_col;  // plain (n, blocks of m); blocked: 512-byte tiles
  i64 m, n;
  i64 ld_x, ld_q_row, ld_s_row, ld_q_col, ld_s_col;
  u32 tiles_n;      // thread blocks across a row
  u32 tiles_m;      // and down a column
  u32 wide_x;       // base and pitch of x are multiples of 16 bytes
  u32 wide_q_row;   // of q_row: 8 bytes
  u32 wide_q_col;   // of q_col: 16 bytes
  u32 wide_s_row;   // of s_row: 16 bytes when blocked, else 4
  u32 wide_s_col;
};

}  // namespace mxjit
