// Launch parameters of the quantize kernels. Included by the device templates and by the host code that
// launches them.
#pragma once

#include "ptx/types.cuh"

namespace mxjit {

/// What base and pitch are multiples of, so that a tensor can be accessed in wide pieces.
enum WideAccess : u32 {
  wide_x = 1,       // 16 bytes
  wide_q_row = 2,   // the bytes that a lane writes at once: 8, or 4 of rows with fp32 input
  wide_q_col = 4,   // 16 bytes
  wide_s_row = 8,   // codes: 16 bytes when blocked, else 4
  wide_s_col = 16,  // likewise
  wide_y = 32,      // 16 bytes
  wide_all = 63,    // tensors that a kernel does not have count as wide
};

/// What a launch of fp32_passes makes of its two passes over tiles.
enum class Passes : u32 {
  both,   // two thread blocks a tile, which take numbers. amax_row, amax_col and progress are zero at first
  first,  // a thread block a tile, which writes its tile's largest magnitude into a slot of amax_row
  second  // likewise, with the largest of all slots: follows a launch of `first` with the same grid
};

/// At most so many slots a launch of `second` reads, and tiles it has.
inline constexpr u32 most_slots = 1024;

/// gate / (1 + exp(-alpha * gate)) * up; with a limit, gate at most that, up within it on both sides, and up
/// + 1 in place of up. fp32 does most of the work, with the values that are floats.
struct SwigluParams {
  double alpha, limit;
  float exponent, exponent_rest, fast_limit;  // -alpha * log2(e): 16 bits of it, and the rest times ln(2)
  u32 exact_from;  // bits, the lower half 0, of the least gate that fp32 may not be right for
  i64 up;          // elements from a gate to its up, where they do not alternate
};

/// A row-major matrix x of m x n elements, or one such matrix after another (experts). "row" outputs have
/// blocks along the rows of x, "col" outputs have blocks down its columns and are stored transposed. A pitch
/// is the distance between two rows, in elements; every expert starts a whole number of rows later. Extents
/// are those of the outputs: SwiGLU reads two elements for each.
///
/// Scales are codes (mx) or floats (fp32): plain (m, blocks of n) and (n, blocks of m); codes may be blocked,
/// 512-byte tiles; floats may be mn_major, those matrices transposed.
struct QuantizeParams {
  const void* x;
  u8* q_row;  // (m, n)
  void* s_row;
  u8* q_col;  // (n, m)
  void* s_col;
  const i32* offsets;  // ends of the groups of rows, or of columns, of x; null without groups
  i32* status;         // four words that a fault is reported in, or null
  // fp32_passes. Largest magnitudes as bits of fp32: of the rows (experts, m) or, where one scale serves
  // them, of everything or, in passes of their own, of every tile; of the columns (experts or groups, n).
  // How far the grid has come.
  u32* amax_row;
  u32* amax_col;
  u32* progress;
  i64 m, n;  // rows: m counts those of all experts whose scales are not padded
  i64 ld_x, ld_q_row, ld_s_row, ld_q_col, ld_s_col;
  u32 tiles_n;       // thread blocks along a row of x
  u32 strips;        // of gridDim.x thread blocks each that this takes; an expert has as many blockIdx.z
  u32 first_tile_m;  // of blockIdx.y == 0
  u32 first_expert;  // of blockIdx.z == 0
  u32 strip;         // fp32_passes: tiles across a strip
  u32 lead;          // and how many strips the first pass is ahead of the second
  i32 groups;
  u32 wide;        // WideAccess bits
  float amax_cap;  // fp32: no largest magnitude counts as more
  Passes passes;
  i64 expert_x;  // elements from one expert of x to the next
  u16* y;        // the values in bf16: (m, n), or (n, m) as High says
  i64 ld_y;
  SwigluParams swiglu;
  const void* weight;  // RMSNorm: of every column, or row, of x as it is stored
  double* sums;  // zero at first: of the squares of every row (experts, m), or column (experts, n), of x
  double eps;
};

}  // namespace mxjit
