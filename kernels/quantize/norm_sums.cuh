// The sums of squares that RMSNorm needs, of a tile: added, in double, to words that start as zero.
#pragma once

#include "quantize/panel.cuh"
#include "quantize/params.cuh"
#include "quantize/tile_grid.cuh"

namespace mxjit {

struct NormSums {
  using Params = QuantizeParams;
  template <class Config>
  struct Staging {};

  /// The parameters of one expert.
  template <class Config>
  static __device__ __forceinline__ Params expert(const Params& params, i64 index) {
    return expert_data<Config>(params, index);
  }

  template <class Config>
  static __device__ __forceinline__ void tile(const Params& p, Lane<Config> lane, Staging<Config>&) {
    using S = Pairs<Config::stored>;
    constexpr int across = Lane<Config>::across;
    typename S::Pair x[Config::rows_per_lane][4];
    load_panel<Config>(p, lane, x);
    if constexpr (Config::pre == Pre::rmsnorm) {
      static_assert(Config::rows_per_lane <= across);
      double mine = 0;  // all lanes beside each other know all sums; every lane adds one
#pragma unroll
      for (int r = 0; r < Config::rows_per_lane; ++r) {
        double sum = 0;
#pragma unroll
        for (int w = 0; w < 4; ++w) {
          const Floats wide = S::widen(x[r][w]);
          sum += square(wide.low) + square(wide.high);
        }
#pragma unroll
        for (u32 mask = 1; mask < across; mask *= 2) sum += ptx::shfl_xor(sum, mask);
        if (lane.index % across == r) mine = sum;
      }
      if (lane.index % across < lane.rows) atomicAdd(p.sums + lane.row + lane.index % across, mine);
    } else {
#pragma unroll
      for (int w = 0; w < 4; ++w) {
        double low = 0, high = 0;
#pragma unroll
        for (int r = 0; r < Config::rows_per_lane; ++r) {
          const Floats wide = S::widen(x[r][w]);
          low += square(wide.low), high += square(wide.high);
        }
#pragma unroll
        for (u32 mask = across; mask < 32; mask *= 2)
          low += ptx::shfl_xor(low, mask), high += ptx::shfl_xor(high, mask);
        double* to = p.sums + lane.column + 2 * w;
        if (lane.index < across && 2 * w < lane.columns) atomicAdd(to, low);
        if (lane.index < across && 2 * w + 1 < lane.columns) atomicAdd(to + 1, high);
      }
    }
  }

 private:
  static __device__ __forceinline__ double square(double value) { return value * value; }
};

}  // namespace mxjit
