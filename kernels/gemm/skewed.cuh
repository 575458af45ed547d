// Products and epilogue of tiles in two parts of their columns, each stored while the other's products run.
#pragma once

#include "gemm/epilogue.cuh"
#include "gemm/params.cuh"
#include "gemm/stages.cuh"
#include "gemm/tile_factors.cuh"
#include "gemm/tiles.cuh"
#include "ptx/registers.cuh"
#include "ptx/tma.cuh"
#include "ptx/wgmma.cuh"

namespace mxjit {

/// The first part's products of a tile's last two blocks of K come before the second part's, so that the
/// first part is stored while those run; so do those of the next tile's first two blocks, while the second
/// part is stored. No other order keeps both parts in their registers: the compiler follows what is in flight
/// only along straight lines.
template <class Config>
__device__ __forceinline__ void multiply_skewed(const GemmDenseFp8Params& params,
                                                const DenseFp8Shared<Config>& shared, int group) {
  static_assert(Config::accumulation == Accumulation::fast && Config::k_split == 1 && Config::stages >= 4);
  static_assert(!gated<Config>, "parts are whole boxes of as many products");
  constexpr int first_n = dense_fp8_first_part(Config::block_n), second_n = Config::block_n - first_n;

  const GemmArguments& g = params.arguments;
  const int thread = static_cast<int>(threadIdx.x) % 128, lane = thread % 32;
  const int strip = group * 4 + ptx::same_in_warp(thread / 32);
  const int k_blocks = k_blocks_of(g);
  const Products<Config> products{shared, group, thread};
  TileFactors<Config> tile_factors(shared);
  tile_factors.fetch(g);
  TileWalk<Config> walk(g.m, g.n);
  if (!walk.valid()) return;

  Ring<Config::stages> ring;
  const auto multiply = [&](auto& sum, int column, bool accumulate) {
    products.issue(sum, ring.stage, column, accumulate);
  };
  float first[first_n / 2];
  int stage_0, stage_1;  // of two blocks that the second part follows in
  const auto run_ahead = [&](bool accumulate, bool both) {
    stage_0 = ring.stage;
    products.wait(ring);
    multiply(first, 0, accumulate);
    ring.advance();
    stage_1 = ring.stage;
    if (both) {
      products.wait(ring);
      multiply(first, 0, true);
      ring.advance();
    }
  };
  run_ahead(false, k_blocks > 1);
  while (true) {
    float second[second_n / 2];
    products.issue(second, stage_0, first_n, false);
    const i32 row = walk.tile_m() * Config::block_m + strip * 16, column = walk.tile_n() * Config::block_n;
    FactorsOfTile factors;
    const auto rows_from = [&](int from) {
      return RowsOfD<Config>(params.d, g, shared.boxes(strip), factors.from(strip * 16, from), row,
                             column + from, lane);
    };
    int previous = stage_0;
    if (k_blocks > 1) {
      products.issue(second, stage_1, first_n, true);
      ptx::wgmma_wait<1>();
      products.release(previous);
      previous = stage_1;
    }
    const int middle = k_blocks > 3 ? k_blocks - 2 : k_blocks;
    for (int i = 2; i < middle; ++i) {
      products.wait(ring);
      multiply(first, 0, true);
      multiply(second, first_n, true);
      ptx::wgmma_wait<2>();  // the block before this one has been read
      products.release(previous);
      previous = ring.stage;
      ring.advance();
    }
    factors = tile_factors.wait();
    RowsOfD<Config> first_rows = rows_from(0);
    if (k_blocks > 3) {
      run_ahead(true, true);
      ptx::wgmma_wait<2>();
      products.release(previous);
      products.issue(second, stage_0, first_n, true);
      products.issue(second, stage_1, first_n, true);
      previous = stage_1;
      ptx::wgmma_wait<2>();
    } else {
      ptx::wgmma_wait<0>();
    }
    ptx::wgmma_pin(first);
    store(first_rows, first);
    RowsOfD<Config> second_rows = rows_from(first_n);
    products.template finish<0>(second);
    products.release(previous);
    if (k_blocks > 3) products.release(stage_0);
    walk.next();
    if (!walk.valid()) {
      store(second_rows, second);
      break;
    }
    run_ahead(false, k_blocks > 1);
    store(second_rows, second);
    tile_factors.release();
  }
  ptx::tma_store_wait_read<0>();
}

}  // namespace mxjit
