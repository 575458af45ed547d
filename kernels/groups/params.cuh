// Launch parameters of the kernels that move rows of groups, and those of groups themselves. Included by the
// device templates and by the host code that launches them.
#pragma once

#include "ptx/types.cuh"

namespace mxjit {

/// Most groups of one launch.
inline constexpr int most_groups = 1024;

/// Groups of consecutive rows whose ends are known to the device only.
struct GroupParams {
  const i32* ends;  // `count` of them
  i32* status;      // four words that a fault is reported in, or null
  i64 limit;        // the most an end can be
  i32 count;        // at most most_groups; 0: no groups
  i32 alignment;    // what a group's size must be a multiple of
};

/// Rows of bytes, unpadded (x) and with every group on a multiple of an alignment (x_padded).
struct PadGroupsParams {
  const u8* from;
  u8* to;
  i32 *starts, *padded_ends;  // written by pad
  const i32* given_starts;    // read by unpad
  GroupParams groups;
  i64 from_rows, to_rows;
  i64 row_bytes, from_pitch, to_pitch;  // bytes
  u32 unit;                             // rows that padded groups start on multiples of
  u32 lanes;                            // threads that share a row: a power of two
  u32 piece;  // bytes of one access: 16, 4, 2 or 1, which bases, pitches and row_bytes are multiples of
};

}  // namespace mxjit
