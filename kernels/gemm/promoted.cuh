// Promoted tiles whose next tile's first products run while the sums are stored.
#pragma once

#include "gemm/block_factors.cuh"
#include "gemm/epilogue.cuh"
#include "gemm/stages.cuh"
#include "gemm/tile_factors.cuh"
#include "gemm/tiles.cuh"

namespace mxjit {

/// The next tile's first part is asked for before the sums are stored: it needs no registers but those that
/// the last part has left.
template <class Config>
__device__ __forceinline__ void multiply_promoted(const GemmDenseFp8Params& params,
                                                  const DenseFp8Shared<Config>& shared, int group) {
  constexpr int part_n = Config::block_n / Config::parts;
  const GemmArguments& g = params.arguments;
  const int thread = static_cast<int>(threadIdx.x) % 128, lane = thread % 32;
  const int strip = group * 4 + ptx::same_in_warp(thread / 32);
  const int k_blocks = k_blocks_of(g);
  const Products<Config> products{shared, group, thread};
  TileWalk<Config> walk(g.m, g.n);
  if (!walk.valid()) return;

  Ring<Config::stages> ring;
  TileFactors<Config> factors(shared);
  factors.fetch(g);
  Promotion<Config> promotion(shared, strip, lane);
  float partial[part_n / 2];
  products.wait(ring);
  products.issue(partial, ring.stage, 0, false);
  while (true) {
    const i32 row = walk.tile_m() * Config::block_m + strip * 16;
    const i32 column = walk.tile_n() * Config::block_n;

    float sum[Config::block_n / 2];
#pragma unroll
    for (float& value : sum) value = 0.0f;
    // The first part of the block has been asked for.
    const auto promote_block = [&](int kb) {
      promotion.read(ring.stage, kb, column);
      products.template finish<0>(partial);
      if constexpr (Config::parts == 2) {
        promotion.template add<0>(sum, partial);
        products.issue(partial, ring.stage, part_n, false);
        products.template finish<0>(partial);
      }
      products.release(ring.stage);
      promotion.template add<Config::parts - 1>(sum, partial);
      ring.advance();
    };
    promote_block(0);
    for (int i = 1; i < k_blocks; ++i) {
      products.wait(ring);
      products.issue(partial, ring.stage, 0, false);
      promote_block(i);
    }
    promotion.next_tile(k_blocks);
    const auto store_sum = [&] {
      store(RowsOfD<Config>(params.d, g, shared.boxes(strip), factors.wait().from(strip * 16, 0), row, column,
                            lane),
            sum);
    };
    walk.next();
    if (!walk.valid()) {
      store_sum();
      break;
    }
    products.wait(ring);
    products.issue(partial, ring.stage, 0, false);
    store_sum();
    factors.release();
  }
  ptx::tma_store_wait_read<0>();
}

}  // namespace mxjit
