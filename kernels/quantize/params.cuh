// Launch parameters of the quantize kernels. Included by the device templates and by the host code that
// launches them.
#pragma once

#include "ptx/types.cuh"

namespace mxjit {

/// A row-major matrix x of m x n elements, or one such matrix after another (experts). "row" outputs have
/// blocks along the rows of x, "col" outputs have blocks down its columns and are stored transposed. A pitch
/// is the distance between two rows, in elements; every expert starts a whole number of rows later.
struct QuantizeMxParams {
  const void* x;
  u8* q_row;  // (m, n)
  u8* s_row;  // plain (m, blocks of n); blocked: 512-byte tiles
  u8* q_col;  // (n, m)
  u8* s_col;  // plain (n, blocks of m); blocked: 512-byte tiles
  i64 m, n;
  i64 ld_x, ld_q_row, ld_s_row, ld_q_col, ld_s_col;
  u32 tiles_m, tiles_n;  // thread blocks down an expert's columns and along its rows
  u32 wide_x;            // 1: base and pitch of x are multiples of 16 bytes
  u32 wide_q_row;        // of q_row: 8 bytes
  u32 wide_q_col;        // of q_col: 16 bytes
  u32 wide_s_row;        // of s_row: 16 bytes when blocked, else 4
  u32 wide_s_col;
};

}  // namespace mxjit
