// Shared memory of the Hopper GEMM kernel: stages of A and B, taken in turn by the warp that copies and by
// the warpgroups that compute; what the epilogue needs.
#pragma once

#include "gemm/elements.cuh"
#include "gemm/factor_spans.cuh"
#include "gemm/params.cuh"
#include "gemm/swiglu.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/shared.cuh"
#include "ptx/wgmma.cuh"

namespace mxjit {

/// What the warpgroups of a thread block do at a time: all compute one tile; likewise, in two parts of its
/// columns of which each is stored while the other multiplies; one computes a tile while the other stores its
/// own.
enum class Schedule { together, skewed, in_turn };

/// A place in the turn of the stages.
template <int stages>
struct Ring {
  int stage = 0;
  u32 phase = 0;
  /// By fewer than all stages.
  __device__ __forceinline__ void advance(int by = 1) {
    stage += by;
    if (stage >= stages) {
      stage -= stages;
      phase ^= 1;
    }
  }
  /// By any number of rounds and, besides, fewer than all stages.
  __device__ __forceinline__ void advance(int rounds, int by) {
    phase ^= static_cast<u32>(rounds) & 1;
    advance(by);
  }
};

__device__ __forceinline__ int k_blocks_of(const GemmArguments& g) {
  return (g.k + dense_fp8_block_k - 1) / dense_fp8_block_k;
}

template <class Config>
struct DenseFp8Shared {
  static constexpr int block_k = dense_fp8_block_k;
  static constexpr int a_bytes = Config::block_m * block_k;
  static constexpr int b_bytes = Config::block_n * block_k;
  static constexpr int row_factors = dense_fp8_row_factors(Config::a_span == FactorSpan::block_plain);
  static constexpr int stage_a_factors = Config::block_m * row_factors;
  // 128-blocks of B's rows that the tile meets: its gates one and its ups one, or those beside each other.
  static constexpr bool two_halves = halves<Config> && Config::b_span == FactorSpan::tile;
  static constexpr int b_blocks = two_halves ? 2 : dense_fp8_tile_blocks(Config::block_n);
  static constexpr int block_factors =
      has_block_factors<Config>
          ? dense_fp8_block_factors(Config::block_m, Config::stages, b_blocks, row_factors > 1)
          : 0;
  static constexpr int row_groups = Config::block_m / 64;
  static constexpr bool in_turn = Config::schedule == Schedule::in_turn;
  // Warpgroups that read a stage, or a tile's factors; tiles whose factors are there at a time.
  static constexpr int readers = in_turn ? 1 : row_groups;
  static constexpr int factor_slots = in_turn ? 2 : 1;
  // Of 64 rows: four warps of 16.
  static constexpr int out_columns = dense_fp8_out_columns(Config::block_n, gated<Config>);
  static constexpr int out_bytes = Config::out_boxes * 64 * out_columns * 2;
  static_assert(dense_fp8_shared_bytes(Config::block_m, Config::block_n, Config::stages, Config::k_split,
                                       Config::out_boxes, out_columns, block_factors,
                                       in_turn) == Config::shared_bytes);

  u8* const a = ptx::dynamic_shared();
  u8* const b = a + Config::stages * a_bytes;
  u8* const out = b + Config::stages * b_bytes;
  float* const tile_factors = reinterpret_cast<float*>(out + row_groups * out_bytes);  // of rows and columns
  float* const a_factors =  // of 128-blocks, stage after stage
      tile_factors + factor_slots * (Config::block_m + Config::block_n);
  float* const b_factors = a_factors + Config::stages * stage_a_factors;
  float* const sums = a_factors + block_factors;  // what the second of a pair adds
  u64* const full = reinterpret_cast<u64*>(sums + (Config::k_split - 1) * row_groups * 64 * Config::block_n);
  u64* const empty = full + Config::stages;
  u64* const factors_full = empty + Config::stages;
  u64* const factors_empty = factors_full + factor_slots;
  u64* const turns = factors_empty + factor_slots;

  /// The output boxes of 16 rows of the tile.
  __device__ __forceinline__ u8* boxes(int strip) const { return out + strip * (out_bytes / 4); }
};

/// What a warpgroup multiplies: 64 rows of the tile's A with its B.
template <class Config>
struct Products {
  using Shared = DenseFp8Shared<Config>;
  using Stage = Ring<Config::stages>;

  const Shared& shared;
  int row_group;
  int lane;  // within the warpgroup

  /// Waits until the stage's operands are there.
  __device__ __forceinline__ void wait(const Stage& ring) const {
    ptx::mbarrier_wait(shared.full + ring.stage, ring.phase);
  }

  /// Asks for the products of one block of K with the columns from `column` on, as one group.
  template <int count>
  __device__ __forceinline__ void issue(float (&d)[count], int stage, int column, bool accumulate) const {
    using Mma = ptx::Wgmma<wgmma_types(Config::a, Config::b), count * 2>;
    const u64 a = ptx::wgmma_descriptor(
        ptx::shared_address(shared.a + stage * Shared::a_bytes + row_group * 64 * Shared::block_k));
    const u64 b = ptx::wgmma_descriptor(
        ptx::shared_address(shared.b + stage * Shared::b_bytes + column * Shared::block_k));
    ptx::wgmma_pin(d);
    ptx::wgmma_fence();
#pragma unroll
    for (int k = 0; k < Shared::block_k / 32; ++k) Mma::run(d, a + 2 * k, b + 2 * k, k != 0 || accumulate);
    ptx::wgmma_commit();
    ptx::wgmma_pin(d);
  }

  /// Waits until at most `pending` groups are unfinished, not that of `d`.
  template <int pending, int count>
  __device__ __forceinline__ void finish(float (&d)[count]) const {
    ptx::wgmma_wait<pending>();
    ptx::wgmma_pin(d);
  }

  /// Arrivals of a warpgroup that has read a stage: its products are done in all its warps at once, but each
  /// thread reads factors by itself.
  static constexpr int releases = has_block_factors<Config> ? 128 : 1;

  /// This warpgroup has read the stage.
  __device__ __forceinline__ void release(int stage) const {
    if (lane % (128 / releases) == 0) ptx::mbarrier_arrive(shared.empty + stage);
  }
};

}  // namespace mxjit
