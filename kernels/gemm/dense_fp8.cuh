// Dense FP8 GEMM for Hopper: persistent, warp-specialised, wgmma on TMA-fed stages.
//
// One warp copies; `warpgroups` warpgroups compute 64 rows each of a block_m x block_n tile. Scales that are
// constant along K (one factor, or one a row) are applied in the epilogue; 128-block scales at each
// promotion.
#pragma once

#include "gemm/epilogue.cuh"
#include "gemm/params.cuh"
#include "gemm/tiles.cuh"
#include "ptx/cluster.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/registers.cuh"
#include "ptx/shared.cuh"
#include "ptx/tma.cuh"
#include "ptx/wgmma.cuh"

namespace mxjit {

struct GemmDenseFp8 {
  using Params = GemmDenseFp8Params;

  static constexpr int block_k = 128;  // one swizzle atom, four instructions

  template <class Config>
  struct Shared {
    static constexpr int a_bytes = Config::block_m * block_k;
    static constexpr int b_bytes = Config::block_n * block_k;
    static constexpr int out_bytes =
        Config::out_boxes * 64 * dense_fp8_out_columns(Config::block_n) * 2;  // a warpgroup
    static_assert(dense_fp8_shared_bytes(Config::block_m, Config::block_n, Config::stages, Config::warpgroups,
                                         Config::out_boxes) == Config::shared_bytes);
  };

  template <class Config>
  static __device__ void run(const Params& params);
};

template <class Config>
__device__ void GemmDenseFp8::run(const Params& params) {
  using S = Shared<Config>;
  constexpr int stages = Config::stages;
  constexpr int cluster = Config::cluster;

  static_assert(Config::threads == (Config::warpgroups + 1) * 128 &&
                Config::block_m == Config::warpgroups * 64);
  unsigned char* const tiles_a = ptx::dynamic_shared();
  unsigned char* const tiles_b = tiles_a + stages * S::a_bytes;
  unsigned char* const out = tiles_b + stages * S::b_bytes;
  float* const factors = reinterpret_cast<float*>(out + Config::warpgroups * S::out_bytes);
  u64* const full = reinterpret_cast<u64*>(factors + Config::warpgroups * Config::block_n);
  u64* const empty = full + stages;

  const GemmArguments& g = params.arguments;
  const int warpgroup = static_cast<int>(threadIdx.x) / 128;
  const u32 rank = cluster > 1 ? ptx::cluster_rank() : 0;

  if (threadIdx.x == 0) {
    ptx::tma_prefetch(&params.a);
    ptx::tma_prefetch(&params.b);
    for (int s = 0; s < stages; ++s) {
      ptx::mbarrier_init(full + s, 1);
      ptx::mbarrier_init(empty + s, Config::warpgroups * cluster);
    }
    ptx::mbarrier_init_fence();
  }
  if constexpr (cluster > 1) {
    ptx::cluster_sync();
  } else {
    __syncthreads();
  }

  const int k_blocks = (g.k + block_k - 1) / block_k;
  TileWalk<Config> walk(g.m, g.n, rank);

  if (warpgroup == 0) {
    if constexpr (Config::copy_registers > 0) ptx::drop_registers<Config::copy_registers>();
    if (threadIdx.x == 0) {
      constexpr u32 stage_bytes = S::a_bytes + S::b_bytes;
      int stage = 0;
      u32 phase = 0;
      for (; walk.valid(); walk.next()) {
        const i32 row = walk.tile_m() * Config::block_m;
        const i32 column = walk.tile_n() * Config::block_n;
        for (int kb = 0; kb < k_blocks; ++kb) {
          ptx::mbarrier_wait(empty + stage, phase ^ 1);
          ptx::mbarrier_arrive_expect(full + stage, stage_bytes);
          unsigned char* const to_a = tiles_a + stage * S::a_bytes;
          unsigned char* const to_b = tiles_b + stage * S::b_bytes;
          if constexpr (cluster > 1) {
            // The blocks of a cluster lie along M and share B: each fetches its share and sends it to all.
            constexpr int share = Config::block_n / cluster;
            constexpr u16 everyone = (1 << cluster) - 1;
            ptx::tma_load_2d(to_a, &params.a, full + stage, kb * block_k, row);
            ptx::tma_load_2d_multicast(to_b + rank * share * block_k, &params.b, full + stage, kb * block_k,
                                       column + static_cast<i32>(rank) * share, everyone);
          } else {
            ptx::tma_load_2d(to_a, &params.a, full + stage, kb * block_k, row);
            ptx::tma_load_2d(to_b, &params.b, full + stage, kb * block_k, column);
          }
          if (++stage == stages) {
            stage = 0;
            phase ^= 1;
          }
        }
      }
    }
  } else {
    if constexpr (Config::math_registers > 0) ptx::raise_registers<Config::math_registers>();
    const int group = warpgroup - 1;
    const int lane = static_cast<int>(threadIdx.x) % 128;  // within the warpgroup
    constexpr int part_n = Config::block_n / Config::parts;
    constexpr int registers = Config::block_n / 2;
    constexpr int part_registers = part_n / 2;
    constexpr ptx::WgmmaTypes types = wgmma_types(Config::a, Config::b);
    using Mma = ptx::Wgmma<types, part_n>;
    static_assert(Config::parts <= 2);

    // Block r of the cluster is told by thread r of each warpgroup that a stage may be overwritten.
    const auto release = [&](int s) {
      if constexpr (cluster > 1) {
        if (lane < cluster)
          ptx::mbarrier_arrive_remote(ptx::map_to_rank(ptx::shared_address(empty + s), lane));
      } else {
        if (lane == 0) ptx::mbarrier_arrive(empty + s);
      }
    };

    int stage = 0;
    u32 phase = 0;
    EpilogueBuffers<Config> buffers{out + group * S::out_bytes, 0, factors + group * Config::block_n};
    for (; walk.valid(); walk.next()) {
      const i32 row = walk.tile_m() * Config::block_m + group * 64;
      const i32 column = walk.tile_n() * Config::block_n;
      float sum[registers];
      BlockScales<Config> scales(g, row, column, lane);
      ColumnFactors<Config> column_factors(g, column, lane);

      if constexpr (Config::accumulation == Accumulation::fast) {
        int previous = -1;
        for (int kb = 0; kb < k_blocks; ++kb) {
          ptx::mbarrier_wait(full + stage, phase);
          const u64 a =
              ptx::wgmma_descriptor(ptx::shared_address(tiles_a + stage * S::a_bytes + group * 64 * block_k));
          const u64 b = ptx::wgmma_descriptor(ptx::shared_address(tiles_b + stage * S::b_bytes));
          ptx::wgmma_pin(sum);
          ptx::wgmma_fence();
#pragma unroll
          for (int k = 0; k < block_k / 32; ++k) Mma::run(sum, a + 2 * k, b + 2 * k, kb + k != 0);
          ptx::wgmma_commit();
          ptx::wgmma_pin(sum);
          ptx::wgmma_wait<1>();  // the block before this one has been read
          if (previous >= 0) release(previous);
          previous = stage;
          if (++stage == stages) {
            stage = 0;
            phase ^= 1;
          }
        }
        ptx::wgmma_wait<0>();
        ptx::wgmma_pin(sum);
        if (previous >= 0) release(previous);
      } else {
#pragma unroll
        for (int i = 0; i < registers; ++i) sum[i] = 0.0f;
        for (int kb = 0; kb < k_blocks; ++kb) {
          scales.advance(kb, k_blocks);
          ptx::mbarrier_wait(full + stage, phase);
          const u64 a =
              ptx::wgmma_descriptor(ptx::shared_address(tiles_a + stage * S::a_bytes + group * 64 * block_k));
          const u64 b = ptx::wgmma_descriptor(ptx::shared_address(tiles_b + stage * S::b_bytes));
          float partial[part_registers];
          const auto run_part = [&]<int part>() {
            ptx::wgmma_pin(partial);
            ptx::wgmma_fence();
#pragma unroll
            for (int k = 0; k < block_k / 32; ++k)
              Mma::run(partial, a + 2 * k, b + 2 * k + part * (part_n * block_k >> 4), k != 0);
            ptx::wgmma_commit();
            ptx::wgmma_pin(partial);
            ptx::wgmma_wait<0>();
            ptx::wgmma_pin(partial);
            if (part == Config::parts - 1) release(stage);
            scales.template promote<part>(sum, partial);
          };
          run_part.template operator()<0>();
          if constexpr (Config::parts > 1) run_part.template operator()<1>();
          if (++stage == stages) {
            stage = 0;
            phase ^= 1;
          }
        }
      }
      // Where no box is handed over in between, a warp may be a tile ahead of the others' reads.
      if constexpr (Config::b_span == FactorSpan::row && !Config::tma_store) warpgroup_sync(group);
      column_factors.publish(buffers.factors, lane);
      store_tile<Config>(params.d, g, sum, row, column, lane, group, buffers);
    }
    ptx::tma_store_wait_read<0>();
  }
  // A block must not leave while a peer may still signal its barriers.
  if constexpr (cluster > 1) ptx::cluster_sync();
}

}  // namespace mxjit
