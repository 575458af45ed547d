// Launch parameters of the kernels that move scale codes between the plain matrix and the blocked layout.
// Included by the device template and by the host code that launches it.
#pragma once

#include "groups/params.cuh"
#include "ptx/types.cuh"

namespace mxjit {

/// rows x columns codes, or one such matrix after another (experts), and the tiles of 128 x 4 codes that they
/// lie in.
struct PackScalesParams {
  const u8* from;
  u8* to;
  GroupParams groups;  // of rows, or of columns
  i64 rows, columns;
  i64 pitch;          // of the plain matrix
  i64 blocked_bytes;  // of all experts; with groups the last tile may be cut short
  i64 tiles;          // of 512 bytes, the last one included
};

}  // namespace mxjit
