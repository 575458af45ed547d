// Launch parameters of the dequantize kernel. Included by the device template and by the host code that
// launches it.
#pragma once

#include "groups/params.cuh"
#include "ptx/types.cuh"

namespace mxjit {

/// Where the scale of an element lies: one for all; one a row; one a row in each group; one a block, in a
/// matrix or in its transpose; in 128 x 4 tiles, of the whole matrix or of each group of rows or of columns.
enum class ScalePlace { tensor, row, row_of_group, plain, mn_major, blocked, m_groups, k_groups };

/// What one thread block decodes at a time: rows and columns of the matrix as it was quantized.
struct DequantizeTile {
  i32 rows, columns;
};
/// Axis "row" reads and writes along rows; axis "col" reads along rows and writes down columns.
inline constexpr DequantizeTile dequantize_tile(bool axis_col) {
  return axis_col ? DequantizeTile{128, 128} : DequantizeTile{64, 256};
}

/// The matrix as it was quantized, blocks lying along its rows: rows x columns FP8 bytes, or one such matrix
/// after another (experts). Axis "col" writes its transpose.
struct DequantizeParams {
  const u8* q;
  const void* s;
  void* x;
  GroupParams groups;
  i64 rows, columns;
  i64 ld_q, ld_x;  // elements
  i64 ld_s;        // scales between two rows of a plain or mn_major scale matrix
  i64 expert_s;    // scales of one expert
  u64 tiles;       // of all experts
  u32 tiles_down, tiles_across;
  u32 wide;  // 1: bases and pitches are multiples of 8 bytes (q) and 16 bytes (x)
};

}  // namespace mxjit
