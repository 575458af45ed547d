// Dense FP8 GEMM for Hopper: persistent, warp-specialised, wgmma on TMA-fed stages.
//
// One warp copies; warpgroups compute 64 rows each of a block_m x block_n tile, or, k_split, every second
// block of K of as many rows, and add what they have in a fixed order. Scales that are constant along K (one
// factor, or one a row) are applied in the epilogue; 128-block scales at each promotion.
#pragma once

#include "gemm/epilogue.cuh"
#include "gemm/params.cuh"
#include "gemm/tiles.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/registers.cuh"
#include "ptx/shared.cuh"
#include "ptx/tma.cuh"
#include "ptx/wgmma.cuh"

namespace mxjit {

/// The stages of shared memory, taken in turn by the warp that copies and by those that compute.
template <int stages>
struct Ring {
  int stage = 0;
  u32 phase = 0;
  __device__ __forceinline__ void advance(int by = 1) {
    stage += by;
    if (stage >= stages) {
      stage -= stages;
      phase ^= 1;
    }
  }
};

struct GemmDenseFp8 {
  using Params = GemmDenseFp8Params;

  static constexpr int block_k = 128;  // one swizzle atom, four instructions

  template <class Config>
  static __device__ __forceinline__ void prepare(const Params& params) {
    if (threadIdx.x != 0) return;
    const Shared<Config> shared;
    ptx::tma_prefetch(&params.a);
    ptx::tma_prefetch(&params.b);
    for (int s = 0; s < Config::stages; ++s) {
      ptx::mbarrier_init(shared.full + s, 1);
      ptx::mbarrier_init(shared.empty + s, Config::block_m / 64);
    }
    ptx::mbarrier_init_fence();
  }

  template <class Config>
  static __device__ __forceinline__ void run(const Params& params) {
    static_assert(Config::threads == (Config::warpgroups + 1) * 128 &&
                  Config::block_m * Config::k_split == Config::warpgroups * 64);
    static_assert(dense_fp8_shared_bytes(Config::block_m, Config::block_n, Config::stages, Config::k_split,
                                         Config::out_boxes) == Config::shared_bytes);
    const Shared<Config> shared;
    __syncthreads();  // what `prepare` made is there
    const int warpgroup = static_cast<int>(threadIdx.x) / 128;
    if (warpgroup == 0) {
      if constexpr (Config::copy_registers > 0) ptx::drop_registers<Config::copy_registers>();
      if (threadIdx.x == 0) copy<Config>(params, shared);
    } else {
      if constexpr (Config::math_registers > 0) ptx::raise_registers<Config::math_registers>();
      multiply<Config>(params, shared, warpgroup - 1);
    }
  }

 private:
  template <class Config>
  struct Shared {
    static constexpr int a_bytes = Config::block_m * block_k;
    static constexpr int b_bytes = Config::block_n * block_k;
    static constexpr int row_groups = Config::block_m / 64;
    static constexpr int out_bytes =  // of 64 rows: four warps of 16
        Config::out_boxes * 64 * dense_fp8_out_columns(Config::block_n) * 2;

    u8* const a = ptx::dynamic_shared();
    u8* const b = a + Config::stages * a_bytes;
    u8* const out = b + Config::stages * b_bytes;
    float* const factors = reinterpret_cast<float*>(out + row_groups * out_bytes);
    float* const sums = factors + row_groups * 2 * Config::block_n;  // what the second of a pair adds
    u64* const full =
        reinterpret_cast<u64*>(sums + (Config::k_split - 1) * row_groups * 64 * Config::block_n);
    u64* const empty = full + Config::stages;
  };

  static __device__ __forceinline__ int blocks_of(const GemmArguments& g) {
    return (g.k + block_k - 1) / block_k;
  }

  template <class Config>
  static __device__ __forceinline__ void copy(const Params& params, const Shared<Config>& shared) {
    const GemmArguments& g = params.arguments;
    const u32 stage_bytes = static_cast<u32>(g.a_rows * block_k + Shared<Config>::b_bytes);
    const int k_blocks = blocks_of(g);
    Ring<Config::stages> ring;
    for (TileWalk<Config> walk(g.m, g.n); walk.valid(); walk.next()) {
      const i32 row = walk.tile_m() * Config::block_m, column = walk.tile_n() * Config::block_n;
      for (int kb = 0; kb < k_blocks; ++kb, ring.advance()) {
        ptx::mbarrier_wait(shared.empty + ring.stage, ring.phase ^ 1);
        u64* const full = shared.full + ring.stage;
        ptx::mbarrier_arrive_expect(full, stage_bytes);
        ptx::tma_load_2d(shared.a + ring.stage * Shared<Config>::a_bytes, &params.a, full, kb * block_k, row);
        ptx::tma_load_2d(shared.b + ring.stage * Shared<Config>::b_bytes, &params.b, full, kb * block_k,
                         column);
      }
    }
  }

  template <class Config>
  static __device__ __forceinline__ void multiply(const Params& params, const Shared<Config>& shared,
                                                  int group) {
    constexpr int part_n = Config::block_n / Config::parts;
    constexpr int registers = Config::block_n / 2;
    using Mma = ptx::Wgmma<wgmma_types(Config::a, Config::b), part_n>;
    static_assert(Config::parts <= 2);

    const GemmArguments& g = params.arguments;
    const int k_blocks = blocks_of(g);
    const int lane = static_cast<int>(threadIdx.x) % 128;  // within the warpgroup
    const int row_group = group / Config::k_split, k_part = group % Config::k_split;
    const int own_blocks = (k_blocks - k_part + Config::k_split - 1) / Config::k_split;
    const int tail = Config::k_split == 1 ? 1
                     : own_blocks > 0     ? k_blocks - k_part - (own_blocks - 1) * Config::k_split
                                          : k_blocks;
    u8* const tile_a = shared.a + row_group * 64 * block_k;

    // Asks for one block of K times a part of the columns.
    const auto issue = [&](auto& d, int stage, int part, bool accumulate) {
      const u64 a = ptx::wgmma_descriptor(ptx::shared_address(tile_a + stage * Shared<Config>::a_bytes));
      const u64 b = ptx::wgmma_descriptor(
          ptx::shared_address(shared.b + stage * Shared<Config>::b_bytes + part * part_n * block_k));
      ptx::wgmma_pin(d);
      ptx::wgmma_fence();
#pragma unroll
      for (int k = 0; k < block_k / 32; ++k) Mma::run(d, a + 2 * k, b + 2 * k, k != 0 || accumulate);
      ptx::wgmma_commit();
      ptx::wgmma_pin(d);
    };
    const auto release = [&](int stage) {
      if (lane == 0) ptx::mbarrier_arrive(shared.empty + stage);
    };

    Ring<Config::stages> ring;
    int turn = 0;
    for (TileWalk<Config> walk(g.m, g.n); walk.valid(); walk.next()) {
      // A tile's first own block is k_part past where the last tile ended; after the last one, its end.
      if constexpr (Config::k_split > 1) ring.advance(own_blocks > 0 ? k_part : tail);
      float sum[registers];
      i32 row = 0, column = 0;
      RowFactors<Config> row_factors;
      ColumnFactors<Config> column_factors;
      BlockScales<Config> scales;
      // Where the tile lies, and the factors there: found out while the first block multiplies.
      const auto look_up = [&] {
        row = walk.tile_m() * Config::block_m + row_group * 64;
        column = walk.tile_n() * Config::block_n;
        row_factors.fetch(g, row, lane);
        column_factors.fetch(g, column, lane);
        scales.start(g, row, column, lane, k_part);
      };

      if constexpr (Config::accumulation == Accumulation::fast) {
        int previous = 0;
        const auto block = [&]<bool first>(int i) {
          ptx::mbarrier_wait(shared.full + ring.stage, ring.phase);
          issue(sum, ring.stage, 0, !first);
          if constexpr (first) {
            look_up();
          } else {
            ptx::wgmma_wait<1>();  // the block before this one has been read
            release(previous);
          }
          previous = ring.stage;
          ring.advance(i + 1 < own_blocks ? Config::k_split : tail);
        };
        if (own_blocks > 0) block.template operator()<true>(0);
        for (int i = 1; i < own_blocks; ++i) block.template operator()<false>(i);
        ptx::wgmma_wait<0>();
        ptx::wgmma_pin(sum);
        if (own_blocks > 0) release(previous);
      } else {
#pragma unroll
        for (int i = 0; i < registers; ++i) sum[i] = 0.0f;
        // In the shadow of the first block's products a small tile looks up where it lies; a large one has no
        // registers for what two blocks need at a time.
        constexpr bool in_shadow = Config::block_m == 64;
        if constexpr (!in_shadow) look_up();
        for (int i = 0; i < own_blocks; ++i) {
          const bool more = i + 1 < own_blocks;
          if (!in_shadow || i > 0) scales.advance(g, more);
          ptx::mbarrier_wait(shared.full + ring.stage, ring.phase);
          float partial[part_n / 2];
          const auto run_part = [&]<int part>() {
            issue(partial, ring.stage, part, false);
            if (in_shadow && part == 0 && i == 0) {
              look_up();
              scales.advance(g, more);
            }
            ptx::wgmma_wait<0>();
            ptx::wgmma_pin(partial);
            if (part == Config::parts - 1) release(ring.stage);
            scales.template promote<part>(sum, partial);
          };
          run_part.template operator()<0>();
          if constexpr (Config::parts > 1) run_part.template operator()<1>();
          ring.advance(more ? Config::k_split : tail);
        }
      }
      if constexpr (Config::k_split > 1) {
        if (!add_pair<Config>(sum, shared.sums + row_group * 64 * Config::block_n, row_group, k_part,
                              own_blocks > 0, lane))
          continue;
      }
      // In turns: a warp may be a tile ahead of the others' reads.
      turn ^= 1;
      const EpilogueBuffers buffers{shared.out + row_group * Shared<Config>::out_bytes,
                                    shared.factors + (row_group * 2 + turn) * Config::block_n};
      column_factors.publish(buffers.column_factors, lane);
      store_tile<Config>(params.d, g, sum, row_factors, row, column, lane, row_group, buffers);
    }
    ptx::tma_store_wait_read<0>();
  }

  /// Adds the sums of the second warpgroup of a pair, if it has any, to those of the first. Whether this is
  /// the first, which goes on with them.
  template <class Config, int registers>
  static __device__ __forceinline__ bool add_pair(float (&sum)[registers], float* between, int row_group,
                                                  int k_part, bool any, int lane) {
    const int written = 1 + Shared<Config>::row_groups + 2 * row_group, read = written + 1;
    if (k_part == 1) {
#pragma unroll
      for (int i = 0; i < registers; ++i) between[i * 128 + lane] = any ? sum[i] : 0.0f;
    }
    ptx::bar_sync<256>(written);
    if (k_part == 0) {
#pragma unroll
      for (int i = 0; i < registers; ++i) sum[i] += between[i * 128 + lane];
    }
    ptx::bar_sync<256>(read);
    return k_part == 0;
  }
};

}  // namespace mxjit
