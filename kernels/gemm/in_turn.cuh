// Two warpgroups take tiles in turn: one stores its own while the other multiplies.
#pragma once

#include "gemm/epilogue.cuh"
#include "gemm/params.cuh"
#include "gemm/stages.cuh"
#include "gemm/tile_factors.cuh"
#include "gemm/tiles.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/registers.cuh"
#include "ptx/tma.cuh"
#include "ptx/wgmma.cuh"

namespace mxjit {

/// What one of two warpgroups does after the other, again and again. Every warp gives its part of a turn when
/// it has had its own, so that none is left behind by more than the barrier can tell.
class Turn {
 public:
  static constexpr u32 arrivals = 4;

  /// Of `group`, 0, which is first, or 1.
  __device__ __forceinline__ Turn(u64* turns, int group)
      : own_(turns + group), other_(turns + (group ^ 1)), phase_(group == 0 ? 1 : 0) {}
  __device__ __forceinline__ void wait() {
    ptx::mbarrier_wait(own_, phase_);
    phase_ ^= 1;
  }
  __device__ __forceinline__ void give(int lane) const {
    if (lane == 0) ptx::mbarrier_arrive(other_);
  }

 private:
  u64* own_;
  u64* other_;
  u32 phase_;
};

/// A warpgroup has all 128 rows of its tiles. It waits for its turn, which the other gives when it has seen
/// the last stage of its own tile: the barrier of a stage tells a round from the next, not from later ones.
template <class Config>
__device__ __forceinline__ void multiply_in_turn(const GemmDenseFp8Params& params,
                                                 const DenseFp8Shared<Config>& shared, int group) {
  static_assert(Config::accumulation == Accumulation::fast && Config::k_split == 1 &&
                Config::block_m == 128 && Config::warpgroups == 2);
  const GemmArguments& g = params.arguments;
  const int thread = static_cast<int>(threadIdx.x) % 128, lane = thread % 32;
  const int warp = ptx::same_in_warp(thread / 32);
  const int k_blocks = k_blocks_of(g);
  const int rounds = k_blocks / Config::stages, beyond = k_blocks % Config::stages;  // of the stages, a tile
  const Products<Config> upper{shared, 0, thread}, lower{shared, 1, thread};
  TileFactors<Config> tile_factors(shared);
  tile_factors.fetch(g);
  TileWalk<Config> walk(g.m, g.n);
  Ring<Config::stages> ring;
  const auto skip = [&] {
    walk.next();
    ring.advance(rounds, beyond);
    tile_factors.skip();
  };
  Turn turn(shared.turns, group);
  if (group == 1) skip();
  while (walk.valid()) {
    turn.wait();
    float above[Config::block_n / 2], below[Config::block_n / 2];  // sums of 64 rows each
    int previous = 0;
    const auto multiply = [&](bool accumulate) {
      upper.wait(ring);
      upper.issue(above, ring.stage, 0, accumulate);
      lower.issue(below, ring.stage, 0, accumulate);
      if (accumulate) {
        ptx::wgmma_wait<2>();  // the block before this one has been read
        upper.release(previous);
      }
      previous = ring.stage;
      ring.advance();
    };
    multiply(false);
    for (int i = 1; i < k_blocks; ++i) multiply(true);
    turn.give(lane);
    ptx::wgmma_wait<0>();
    ptx::wgmma_pin(above);
    ptx::wgmma_pin(below);
    upper.release(previous);
    const i32 row = walk.tile_m() * Config::block_m + warp * 16, column = walk.tile_n() * Config::block_n;
    const FactorsOfTile factors = tile_factors.wait();
    const auto rows_from = [&](int from) {
      return RowsOfD<Config>(params.d, g, shared.boxes(group * 4 + warp), factors.from(from + warp * 16, 0),
                             row + from, column, lane);
    };
    store(rows_from(0), above);
    store(rows_from(64), below);
    tile_factors.release();
    walk.next();
    skip();
  }
  ptx::tma_store_wait_read<0>();
}

}  // namespace mxjit
