// Factors that are constant along K: of a tile's rows and columns, or one for all.
//
// A warp of its own has them brought to shared memory by the copy engine, tile after tile, so that neither
// loads nor barriers of them stand between products.
#pragma once

#include "gemm/factor_spans.cuh"
#include "gemm/params.cuh"
#include "gemm/stages.cuh"
#include "gemm/swiglu.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/tma.cuh"

namespace mxjit {

/// A tile's factors: from some row's and some column's on, and that of all.
struct FactorsOfTile {
  const float* rows;
  const float* columns;
  float one;

  __device__ __forceinline__ FactorsOfTile from(int row, int column) const {
    return {rows + row, columns + column, one};
  }
};

template <class Config>
class TileFactors {
 public:
  static constexpr bool rows = Config::a_span == FactorSpan::row, columns = Config::b_span == FactorSpan::row;
  static constexpr bool any = rows || columns;
  static constexpr int arrivals = 1 + 32;  // with the copy engine's bytes, and of a warp that loads

  explicit __device__ __forceinline__ TileFactors(const DenseFp8Shared<Config>& shared) : shared_(shared) {}

  /// By one warp: has the factors of the tile at row and column brought, when those before have been read.
  __device__ __forceinline__ void bring(const GemmDenseFp8Params& params, i32 row, i32 column, int lane) {
    const GemmArguments& g = params.arguments;
    ptx::mbarrier_wait(shared_.factors_empty + turn_.stage, turn_.phase ^ 1);
    u64* const full = shared_.factors_full + turn_.stage;
    const bool row_box = rows && g.a_scale_boxes, column_box = columns && g.b_scale_boxes;
    if (lane == 0) {
      ptx::mbarrier_arrive_expect(
          full, (row_box ? Config::block_m * 4 : 0) + (column_box ? Config::block_n * 4 : 0));
      if (row_box) ptx::tma_load_2d(of_rows(), &params.a_scale, full, row, 0);
      if (column_box) ptx::tma_load_2d(of_columns(), &params.b_scale, full, column, 0);
    }
    if (rows && !row_box) load<Config::block_m, false>(of_rows(), g.a_scale, row, g.m, lane);
    if (columns && !column_box)
      load<Config::block_n, gated<Config>>(of_columns(), g.b_scale, column, g.n, lane);
    ptx::mbarrier_arrive(full);
    turn_.advance();
  }

  /// One factor of all elements, which a thread reads once.
  __device__ __forceinline__ void fetch(const GemmArguments& g) {
    if constexpr (Config::a_span == FactorSpan::tensor) one_ *= __ldg(g.a_scale);
    if constexpr (Config::b_span == FactorSpan::tensor) one_ *= __ldg(g.b_scale);
  }

  /// Leaves a tile to others.
  __device__ __forceinline__ void skip() { turn_.advance(); }

  /// The current tile's.
  __device__ __forceinline__ FactorsOfTile wait() const {
    if constexpr (any) ptx::mbarrier_wait(shared_.factors_full + turn_.stage, turn_.phase);
    return {of_rows(), of_columns(), one_};
  }

  /// This thread has read them, and has done with the tile.
  __device__ __forceinline__ void release() {
    if constexpr (any) {
      ptx::mbarrier_arrive(shared_.factors_empty + turn_.stage);
      turn_.advance();
    }
    __syncwarp();  // a loop that lanes of a warp enter one after another has no uniform registers
  }

 private:
  __device__ __forceinline__ float* of_rows() const {
    return shared_.tile_factors + turn_.stage * (Config::block_m + Config::block_n);
  }
  __device__ __forceinline__ float* of_columns() const { return of_rows() + Config::block_m; }

  template <int count, bool gates>
  static __device__ __forceinline__ void load(float* to, const float* from, i32 first, i32 end, int lane) {
#pragma unroll 4  // its warp has few registers
    for (int i = lane; i < count; i += 32)
      to[i] = first + i < end
                  ? __ldg(gates ? from + source_of_place<Config>(first + i, end) : from + first + i)
                  : 0.0f;
  }

  const DenseFp8Shared<Config>& shared_;
  Ring<DenseFp8Shared<Config>::factor_slots> turn_{};
  float one_ = 1.0f;
};

}  // namespace mxjit
