// The factors of 128-blocks: from memory to the stages whose products they scale, and into the sums.
//
// Loads by threads cost the tensor cores some 20 cycles each, whatever they bring: the copy engine brings
// what it can, and the rest comes in few loads.
#pragma once

#include "gemm/factor_spans.cuh"
#include "gemm/stages.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/tma.cuh"

namespace mxjit {

/// A stage's factors of A as a box of the copy engine's.
template <class Config>
struct BlockFactorBox {
  static constexpr bool any =
      Config::a_span == FactorSpan::block_plain || Config::a_span == FactorSpan::block_mn_major;

  /// Bytes that count at the stage's barrier.
  static __device__ __forceinline__ u32 bytes(const GemmArguments& g) {
    return any && g.a_scale_boxes ? DenseFp8Shared<Config>::stage_a_factors * 4 : 0;
  }

  static __device__ __forceinline__ void copy(const GemmDenseFp8Params& params,
                                              const DenseFp8Shared<Config>& shared, int stage, int kb,
                                              i32 row) {
    if constexpr (any) {
      if (!params.arguments.a_scale_boxes) return;
      constexpr bool plain = Config::a_span == FactorSpan::block_plain;
      ptx::tma_load_2d(shared.a_factors + stage * DenseFp8Shared<Config>::stage_a_factors, &params.a_scale,
                       shared.full + stage, plain ? kb / 4 * 4 : row, plain ? row : kb);
    }
  }
};

/// What no box brings, by one warp, which arrives at the barrier of every stage.
template <class Config>
class BlockFactorLoads {
 public:
  __device__ __forceinline__ BlockFactorLoads(const GemmArguments& g, const DenseFp8Shared<Config>& shared,
                                              int lane)
      : g_(g), shared_(shared), lane_(lane) {}

  /// Loads B's factors from block `kb` of K on, of the tile at `column`: while the stage is read, still.
  __device__ __forceinline__ void load_chunk(i32 tile_column, int kb) {
    if constexpr (Config::b_span == FactorSpan::tile) {
      if (kb % dense_fp8_factor_chunk != 0) return;
      const int block = lane_ / dense_fp8_factor_chunk, k = kb + lane_ % dense_fp8_factor_chunk;
      // The block's row in the matrix of factors.
      const i32 row =
          Shared::two_halves ? (tile_column / 2 + block * (g_.n / 2)) / 128 : tile_column / 128 + block;
      const bool inside = block < Shared::b_blocks && row * 128 < g_.n && k * dense_fp8_block_k < g_.k;
      of_chunk_ = inside ? __ldg(g_.b_scale + static_cast<i64>(row) * g_.ld_b_scale + k) : 0.0f;
    }
  }

  /// Hands factors over to a stage that has been read: those of A's rows from `row` on, and B's.
  __device__ __forceinline__ void store(int stage, i32 row, int kb) {
    if constexpr (is_block(Config::a_span)) {
      if (!BlockFactorBox<Config>::any || !g_.a_scale_boxes) store_rows(stage, row, kb);
    }
    if constexpr (Config::b_span == FactorSpan::tile) {
      if (kb % dense_fp8_factor_chunk == 0) {
        const u32 chunk = chunk_++ % dense_fp8_factor_chunks;
        if (lane_ < chunk_factors) shared_.b_factors[chunk * chunk_factors + lane_] = of_chunk_;
      }
    }
    ptx::mbarrier_arrive(shared_.full + stage);
  }

 private:
  using Shared = DenseFp8Shared<Config>;
  static constexpr int chunk_factors = Shared::b_blocks * dense_fp8_factor_chunk;
  static_assert(chunk_factors <= 32);

  __device__ __forceinline__ void store_rows(int stage, i32 first_row, int kb) const {
    constexpr bool plain = Config::a_span == FactorSpan::block_plain;
    float* const to = shared_.a_factors + stage * DenseFp8Shared<Config>::stage_a_factors;
#pragma unroll 2  // its warp has few registers
    for (int i = lane_; i < Config::block_m; i += 32) {
      const i32 row = first_row + i;
      const i64 from = Config::a_span == FactorSpan::block_mn_major
                           ? static_cast<i64>(kb) * g_.ld_a_scale + row
                           : static_cast<i64>(plain ? row : row / 128) * g_.ld_a_scale + kb;
      to[plain ? i * 4 + kb % 4 : i] = row < g_.m ? __ldg(g_.a_scale + from) : 0.0f;
    }
  }

  const GemmArguments& g_;
  const DenseFp8Shared<Config>& shared_;
  int lane_;
  u32 chunk_ = 0;
  float of_chunk_;
};

/// The products of a stage's block of K, scaled, become part of the sums. A thread has two rows of 16.
template <class Config>
class Promotion {
  using Shared = DenseFp8Shared<Config>;

 public:
  // Columns of the tile that lie in one 128-block of B, wherever the tile is; gates and ups come by eights.
  static constexpr int span_n = 128 % Config::block_n == 0   ? Config::block_n
                                : Config::block_n % 128 == 0 ? 128
                                                             : 64;
  static constexpr int spans = Shared::two_halves ? 2 : Config::block_n / span_n;
  /// Tiles begin in the middle of a 128-block, too.
  static constexpr bool shifts = span_n == 64 && spans > 1 && !Shared::two_halves;
  static_assert(Config::stages < dense_fp8_factor_chunks);  // a chunk is read before another takes its place

  /// Of the strip of 16 rows.
  __device__ __forceinline__ Promotion(const DenseFp8Shared<Config>& shared, int strip, int lane)
      : a_(shared.a_factors + (strip * 16 + lane / 4) * row_factors), b_(shared.b_factors) {}

  /// Reads the factors of a stage that has not been released, for the tile at `column`, which matters where
  /// it shifts.
  __device__ __forceinline__ void read(int stage, int kb, i32 column) {
    if constexpr (!has_block_factors<Config>) return;
    const float* const a = a_ + stage * DenseFp8Shared<Config>::stage_a_factors + kb % row_factors;
    const u32 chunk = (first_chunk_ + kb / dense_fp8_factor_chunk) % dense_fp8_factor_chunks;
    const float* const b =
        b_ + chunk * (Shared::b_blocks * dense_fp8_factor_chunk) + kb % dense_fp8_factor_chunk;
#pragma unroll
    for (int span = 0; span < spans; ++span) {
      const int block = shifts ? (column % 128 + span * span_n) / 128 : span;
      const float of_b = Config::b_span == FactorSpan::tile ? b[block * dense_fp8_factor_chunk] : 1.0f;
#pragma unroll
      for (int r = 0; r < 2; ++r)
        factor_[span][r] = (is_block(Config::a_span) ? a[r * 8 * row_factors] : 1.0f) * of_b;
    }
  }

  template <int part, int count, int total>
  __device__ __forceinline__ void add(float (&sum)[total], const float (&partial)[count]) const {
#pragma unroll
    for (int i = 0; i < count; ++i) {
      if constexpr (has_block_factors<Config>) {
        sum[part * count + i] += factor_[span_of(part * count + i)][i / 2 % 2] * partial[i];
      } else {
        sum[part * count + i] += partial[i];
      }
    }
  }

  /// The tile's blocks of K have been read.
  __device__ __forceinline__ void next_tile(int k_blocks) {
    first_chunk_ += (k_blocks + dense_fp8_factor_chunk - 1) / dense_fp8_factor_chunk;
  }

 private:
  static constexpr int row_factors = Shared::row_factors;
  static_assert(Config::b_span != FactorSpan::tile ||
                (Shared::two_halves ? 128 % (Config::block_n / 2) == 0 : spans * span_n == Config::block_n));

  // Of a sum.
  static __device__ constexpr int span_of(int i) { return Shared::two_halves ? i / 4 % 2 : i * 2 / span_n; }

  const float* a_;
  const float* b_;
  u32 first_chunk_ = 0;
  float factor_[spans][2];
};

}  // namespace mxjit
