// Dense FP8 GEMM for Hopper: persistent, warp-specialised, wgmma on TMA-fed stages.
//
// One warp copies, others bring factors of rows and columns and of 128-blocks. Warpgroups compute 64 rows
// each of a block_m x block_n tile; or, k_split, every second block of K of as many rows, added up in a fixed
// order; or whole tiles in turn. Scales that are constant along K (one factor, or one a row) are applied in
// the epilogue; 128-block scales at each promotion. For SwiGLU a tile's B is eight gates and their eight ups
// in turns, wherever they lie in B.
#pragma once

#include "gemm/block_factors.cuh"
#include "gemm/epilogue.cuh"
#include "gemm/in_turn.cuh"
#include "gemm/params.cuh"
#include "gemm/promoted.cuh"
#include "gemm/skewed.cuh"
#include "gemm/stages.cuh"
#include "gemm/swiglu.cuh"
#include "gemm/tile_factors.cuh"
#include "gemm/tiles.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/registers.cuh"
#include "ptx/shared.cuh"
#include "ptx/tma.cuh"
#include "ptx/wgmma.cuh"

namespace mxjit {

struct GemmDenseFp8 {
  using Params = GemmDenseFp8Params;

  template <class Config>
  static __device__ __forceinline__ void prepare(const Params& params) {
    if (threadIdx.x != 0) return;
    const Shared<Config> shared;
    ptx::tma_prefetch(&params.a);
    ptx::tma_prefetch(&params.b);
    for (int s = 0; s < Config::stages; ++s) {
      ptx::mbarrier_init(shared.full + s, 1 + (has_block_factors<Config> ? 32 : 0));
      ptx::mbarrier_init(shared.empty + s, Shared<Config>::readers * Products<Config>::releases);
    }
    for (int i = 0; i < Shared<Config>::factor_slots; ++i) {
      ptx::mbarrier_init(shared.factors_full + i, TileFactors<Config>::arrivals);
      ptx::mbarrier_init(shared.factors_empty + i, Shared<Config>::readers * 128);
      if (Shared<Config>::in_turn) ptx::mbarrier_init(shared.turns + i, Turn::arrivals);
    }
    ptx::mbarrier_init_fence();
  }

  template <class Config>
  static __device__ __forceinline__ void run(const Params& params) {
    static_assert(Config::threads == (Config::warpgroups + 1) * 128 &&
                  Config::block_m * Config::k_split == Config::warpgroups * 64);
    const Shared<Config> shared;
    __syncthreads();  // what `prepare` made is there
    const int warp = ptx::same_in_warp(static_cast<int>(threadIdx.x) / 32), warpgroup = warp / 4;
    if (warpgroup == 0) {
      if constexpr (Config::copy_registers > 0) ptx::drop_registers<Config::copy_registers>();
      if (TileFactors<Config>::any && warp == 1)
        bring_factors<Config>(params, shared);
      else if (has_block_factors<Config> && warp == 2)
        load_block_factors<Config>(params.arguments, shared);
      else if (threadIdx.x == 0)  // else: behind the other warp's loop this one has no uniform registers
        copy<Config>(params, shared);
    } else {
      if constexpr (Config::math_registers > 0) ptx::raise_registers<Config::math_registers>();
      if constexpr (Config::next)
        multiply_promoted(params, shared, warpgroup - 1);
      else if constexpr (Config::schedule == Schedule::skewed)
        multiply_skewed(params, shared, warpgroup - 1);
      else if constexpr (Config::schedule == Schedule::in_turn)
        multiply_in_turn(params, shared, warpgroup - 1);
      else
        multiply<Config>(params, shared, warpgroup - 1);
    }
  }

 private:
  template <class Config>
  using Shared = DenseFp8Shared<Config>;

  template <class Config>
  static __device__ __forceinline__ void copy(const Params& params, const Shared<Config>& shared) {
    const GemmArguments& g = params.arguments;
    using Factors = BlockFactorBox<Config>;
    const u32 stage_bytes =
        static_cast<u32>(g.a_rows * dense_fp8_block_k + Shared<Config>::b_bytes) + Factors::bytes(g);
    const int k_blocks = k_blocks_of(g);
    Ring<Config::stages> ring;
    for (TileWalk<Config> walk(g.m, g.n); walk.valid(); walk.next()) {
      const i32 row = walk.tile_m() * Config::block_m, column = walk.tile_n() * Config::block_n;
      for (int kb = 0; kb < k_blocks; ++kb, ring.advance()) {
        ptx::mbarrier_wait(shared.empty + ring.stage, ring.phase ^ 1);
        u64* const full = shared.full + ring.stage;
        ptx::mbarrier_arrive_expect(full, stage_bytes);
        ptx::tma_load_2d(shared.a + ring.stage * Shared<Config>::a_bytes, &params.a, full,
                         kb * dense_fp8_block_k, row);
        load_b(params, shared, ring.stage, kb * dense_fp8_block_k, column);
        Factors::copy(params, shared, ring.stage, kb, row);
      }
    }
  }

  template <class Config>
  static __device__ __forceinline__ void load_b(const Params& params, const Shared<Config>& shared, int stage,
                                                i32 k, i32 column) {
    u8* const to = shared.b + stage * Shared<Config>::b_bytes;
    u64* const full = shared.full + stage;
    if constexpr (gated<Config>) {
      ptx::tma_load_4d(to, &params.b, full, k, 0, 0, column / 16);
    } else {
      ptx::tma_load_2d(to, &params.b, full, k, column);
    }
  }

  template <class Config>
  static __device__ __forceinline__ void load_block_factors(const GemmArguments& g,
                                                            const Shared<Config>& shared) {
    const int k_blocks = k_blocks_of(g);
    BlockFactorLoads<Config> factors(g, shared, static_cast<int>(threadIdx.x) % 32);
    Ring<Config::stages> ring;
    for (TileWalk<Config> walk(g.m, g.n); walk.valid(); walk.next()) {
      const i32 row = walk.tile_m() * Config::block_m, column = walk.tile_n() * Config::block_n;
      for (int kb = 0; kb < k_blocks; ++kb, ring.advance()) {
        factors.load_chunk(column, kb);
        ptx::mbarrier_wait(shared.empty + ring.stage, ring.phase ^ 1);
        factors.store(ring.stage, row, kb);
      }
    }
  }

  template <class Config>
  static __device__ __forceinline__ void bring_factors(const Params& params, const Shared<Config>& shared) {
    TileFactors<Config> factors(shared);
    for (TileWalk<Config> walk(params.arguments.m, params.arguments.n); walk.valid(); walk.next())
      factors.bring(params, walk.tile_m() * Config::block_m, walk.tile_n() * Config::block_n,
                    static_cast<int>(threadIdx.x) % 32);
  }

  template <class Config>
  static __device__ __forceinline__ void multiply(const Params& params, const Shared<Config>& shared,
                                                  int group) {
    constexpr int part_n = Config::block_n / Config::parts;
    constexpr int registers = Config::block_n / 2;
    static_assert(Config::parts <= 2);
    // A warpgroup sees every round of a stage: the barrier tells a round from the next only.
    static_assert(Config::stages % Config::k_split == 0);

    const GemmArguments& g = params.arguments;
    const int k_blocks = k_blocks_of(g);
    const int thread = static_cast<int>(threadIdx.x) % 128, lane = thread % 32;
    const int row_group = group / Config::k_split, k_part = group % Config::k_split;
    const int strip = row_group * 4 + ptx::same_in_warp(thread / 32);
    const int own_blocks = (k_blocks - k_part + Config::k_split - 1) / Config::k_split;
    const int tail = Config::k_split == 1 ? 1
                     : own_blocks > 0     ? k_blocks - k_part - (own_blocks - 1) * Config::k_split
                                          : k_blocks;
    const Products<Config> products{shared, row_group, thread};
    Ring<Config::stages> ring;
    TileFactors<Config> factors(shared);
    factors.fetch(g);
    Promotion<Config> promotion(shared, strip, lane);
    for (TileWalk<Config> walk(g.m, g.n); walk.valid(); walk.next()) {
      // A tile's first own block is k_part past where the last tile ended; after the last one, its end.
      if constexpr (Config::k_split > 1) ring.advance(own_blocks > 0 ? k_part : tail);
      float sum[registers];
      i32 row = 0, column = 0;
      // Where the tile lies: found out while the first block multiplies.
      const auto look_up = [&] {
        row = walk.tile_m() * Config::block_m + strip * 16;
        column = walk.tile_n() * Config::block_n;
      };

      if constexpr (Config::accumulation == Accumulation::fast) {
        int previous = 0;
        const auto block = [&]<bool first>(int i) {
          products.wait(ring);
          products.issue(sum, ring.stage, 0, !first);
          if constexpr (first) {
            look_up();
          } else {
            ptx::wgmma_wait<1>();  // the block before this one has been read
            products.release(previous);
          }
          previous = ring.stage;
          ring.advance(i + 1 < own_blocks ? Config::k_split : tail);
        };
        if (own_blocks > 0) block.template operator()<true>(0);
        for (int i = 1; i < own_blocks; ++i) block.template operator()<false>(i);
        products.template finish<0>(sum);
        if (own_blocks > 0) products.release(previous);
      } else {
#pragma unroll
        for (int i = 0; i < registers; ++i) sum[i] = 0.0f;
        // In the shadow of the first block's products a small tile looks up where it lies; a large one has no
        // registers for it.
        constexpr bool in_shadow = Config::block_m == 64;
        static_assert(!in_shadow || !Promotion<Config>::shifts,
                      "which factors to read follows from the place");
        if constexpr (!in_shadow) look_up();
        for (int i = 0; i < own_blocks; ++i) {
          products.wait(ring);
          float partial[part_n / 2];
          const auto run_part = [&]<int part>() {
            products.issue(partial, ring.stage, part * part_n, false);
            if (part == 0) promotion.read(ring.stage, k_part + i * Config::k_split, column);
            if (in_shadow && part == 0 && i == 0) look_up();
            products.template finish<0>(partial);
            if (part == Config::parts - 1) products.release(ring.stage);
            promotion.template add<part>(sum, partial);
          };
          run_part.template operator()<0>();
          if constexpr (Config::parts > 1) run_part.template operator()<1>();
          ring.advance(i + 1 < own_blocks ? Config::k_split : tail);
        }
        promotion.next_tile(k_blocks);
      }
      if constexpr (Config::k_split > 1) {
        if (!add_pair<Config>(sum, shared.sums + row_group * 64 * Config::block_n, row_group, k_part,
                              own_blocks > 0, thread))
          continue;
      }
      store(RowsOfD<Config>(params.d, g, shared.boxes(strip), factors.wait().from(strip * 16, 0), row, column,
                            lane),
            sum);
      factors.release();
    }
    ptx::tma_store_wait_read<0>();
  }

  /// Adds the sums of the second warpgroup of a pair, if it has any, to those of the first. Whether this is
  /// the first, which goes on with them.
  template <class Config, int registers>
  static __device__ __forceinline__ bool add_pair(float (&sum)[registers], float* between, int row_group,
                                                  int k_part, bool any, int thread) {
    const int written = 1 + Shared<Config>::row_groups + 2 * row_group, read = written + 1;
    if (k_part == 1) {
#pragma unroll
      for (int i = 0; i < registers; ++i) between[i * 128 + thread] = any ? sum[i] : 0.0f;
    }
    ptx::bar_sync<256>(written);
    if (k_part == 0) {
#pragma unroll
      for (int i = 0; i < registers; ++i) sum[i] += between[i * 128 + thread];
    }
    ptx::bar_sync<256>(read);
    return k_part == 0;
  }
};

}  // namespace mxjit
