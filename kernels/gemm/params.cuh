// Launch parameters of the GEMM kernels and the sizes that follow from a tile. Included by the device
// templates and by the host code that launches them.
#pragma once

#include "ptx/tensor_map.cuh"
#include "ptx/types.cuh"

namespace mxjit {

/// What becomes of D's values: n product columns are n / 2 of D after SwiGLU.
struct GemmOutput {
  const float* d_scale;  // decodes e4m3; `d_scale_stride` 0 (one) or 1 (one a row)
  i64 d_scale_stride;
  void* d_scales;  // a scale a block of D's columns: in a matrix of any strides or, blocked codes, in tiles
  i64 scale_row_stride, scale_block_stride, scale_batch_stride;
  u32* amax;  // bits of the largest magnitude, zero before the launch
  float amax_cap;
  float swiglu_alpha;
  float swiglu_limit;  // infinity: none
  float swiglu_shift;  // of up: 1 with a limit, else -0, which changes nothing
};

/// D (m x n) = alpha * decode(A (m x k)) * decode(B (n x k))^T + beta * C + bias, row-major, rounded once.
struct GemmArguments {
  const float* a_scale;  // factors that decode; where they lie is the template's a_span
  const float* b_scale;
  const void* bias;  // n elements, or null
  const void* c;     // beta's matrix, of d's type
  void* d;
  i64 ld_c;  // row pitches in elements
  i64 ld_d;
  i32 m;
  i32 n;
  i32 k;
  i32 a_rows;      // of a box of A: a tile's, or as many as all of M needs
  i32 ld_a_scale;  // pitch of a matrix of 128-block factors
  i32 ld_b_scale;
  i32 a_scale_boxes;  // whether a row's or its 128-blocks' factors lie so that the copy engine takes them
  i32 b_scale_boxes;  // likewise a column's
  float alpha;
  float beta;
  GemmOutput output;
};

struct GemmDenseFp8Params {
  ptx::TensorMap a;  // box: 128 bytes of K x a_rows rows, 128-byte swizzle
  // box: 128 bytes of K x block_n rows, likewise; with SwiGLU x 8 gates or ups, gates and ups, block_n / 16
  ptx::TensorMap b;
  ptx::TensorMap d;  // box: dense_fp8_out_columns x 16 rows, for outputs of 16 and 8 bits
  // Boxes of factors, where a_scale_boxes and b_scale_boxes say so: of the 128-blocks of a stage or of the
  // rows of a tile; of its columns.
  ptx::TensorMap a_scale;
  ptx::TensorMap b_scale;
  GemmArguments arguments;
};

/// K of a stage: one swizzle atom, four instructions.
constexpr int dense_fp8_block_k = 128;

/// Columns of one output box of a tile of D: 128 or 64 bytes of 16-bit elements, half of it of 8-bit ones,
/// which is also the swizzle.
constexpr int dense_fp8_out_columns(int block_n, bool gated = false) {
  return (gated ? block_n / 2 : block_n) % 64 == 0 ? 64 : 32;
}

/// Columns of the first of two parts, in whole boxes, no fewer than the second has.
constexpr int dense_fp8_first_part(int block_n) {
  const int box = dense_fp8_out_columns(block_n);
  return (block_n / 2 + box - 1) / box * box;
}

/// Factors of 128-blocks in shared memory. Of A, in each stage, a row has that of its block of K or, plain,
/// of the four blocks of K that are in one piece of 16 bytes. B's, one for all rows, come a chunk of K at a
/// time, into a ring of chunks that is longer than the stages.
constexpr int dense_fp8_row_factors(bool a_plain) { return a_plain ? 4 : 1; }
constexpr int dense_fp8_factor_chunk = 16, dense_fp8_factor_chunks = 16;

/// 128-blocks of B's rows that a tile of so many consecutive ones can meet.
constexpr int dense_fp8_tile_blocks(int block_n) { return (block_n + 127) / 128; }

/// How many factors there are, where the tile meets `b_blocks` 128-blocks of B's rows.
constexpr int dense_fp8_block_factors(int block_m, int stages, int b_blocks, bool a_plain) {
  return stages * block_m * dense_fp8_row_factors(a_plain) +
         b_blocks * dense_fp8_factor_chunk * dense_fp8_factor_chunks;
}

/// Dynamic shared memory of a block: stages of A and B; of each 64 rows output boxes and, k_split, sums;
/// factors of rows and columns, of two tiles where warpgroups take them in turn, and of 128-blocks; two
/// barriers for each stage and for each tile's factors, and two for turns.
constexpr int dense_fp8_shared_bytes(int block_m, int block_n, int stages, int k_split, int out_boxes,
                                     int out_columns, int block_factors, bool in_turn) {
  const int tiles = in_turn ? 2 : 1;
  return stages * (block_m + block_n) * dense_fp8_block_k + block_factors * 4 +
         block_m / 64 * (out_boxes * 64 * out_columns * 2 + (k_split - 1) * 64 * block_n * 4) +
         tiles * (block_m + block_n) * 4 + 16 * (stages + tiles + (in_turn ? 1 : 0));
}

/// One operand of the general kernel, (rows, K) in memory or, mn_major, (K, rows). Distances are in elements;
/// a batch stride of 0 shares one matrix. Scales: fp32 factors or E8M0 codes, in a matrix of any strides or,
/// blocked codes, in tiles.
struct GemmOperand {
  const void* data;
  const void* scale;
  i64 pitch, batch_stride;
  i64 scale_row_stride, scale_k_stride, scale_batch_stride;
};

struct GemmGeneralParams {
  GemmOperand a;
  GemmOperand b;
  GemmOutput output;
  const void* bias;
  const void* c;
  void* d;
  i64 ld_c, ld_d;
  i64 batch_c, batch_d;  // elements between the matrices of a batch
  i64 m, n, k;
  u32 tiles_m, tiles_n;
  float alpha;
  float beta;
};

/// The general kernel: rows and columns of a block's output tile, and its threads.
constexpr int general_tile = 64;
constexpr int general_threads = 256;

}  // namespace mxjit
