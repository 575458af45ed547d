// Launch parameters of the quantize kernels. Included by the device templates and by the host code that
// launches them.
#pragma once

#include "ptx/types.cuh"

namespace mxjit {

/// What base and pitch are multiples of, so that a tensor can be accessed in wide pieces.
enum WideAccess : u32 {
  wide_x = 1,       // 16 bytes
  wide_q_row = 2,   // 8 bytes
  wide_q_col = 4,   // 16 bytes
  wide_s_row = 8,   // 16 bytes when blocked, else 4
  wide_s_col = 16,  // likewise
  wide_all = 31,    // tensors that a kernel does not have count as wide
};

/// A row-major matrix x of m x n elements, or one such matrix after another (experts). "row" outputs have
/// blocks along the rows of x, "col" outputs have blocks down its columns and are stored transposed. A pitch
/// is the distance between two rows, in elements; every expert starts a whole number of rows later.
struct QuantizeMxParams {
  const void* x;
  u8* q_row;           // (m, n)
  u8* s_row;           // plain (m, blocks of n); blocked: 512-byte tiles
  u8* q_col;           // (n, m)
  u8* s_col;           // plain (n, blocks of m); blocked: 512-byte tiles
  const i32* offsets;  // ends of the groups of rows; null without groups
  i32* status;         // four words that a fault is reported in, or null
  i64 m, n;
  i64 ld_x, ld_q_row, ld_s_row, ld_q_col, ld_s_col;
  u32 tiles_n;       // thread blocks along a row of x
  u32 strips;        // of gridDim.x thread blocks each that this takes; an expert has as many blockIdx.z
  u32 first_tile_m;  // of blockIdx.y == 0
  u32 first_expert;  // of blockIdx.z == 0
  i32 groups;
  u32 wide;  // WideAccess bits
};

}  // namespace mxjit
