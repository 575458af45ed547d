// Largest magnitudes of the rows, the columns (inside each group) or all of a tile, for scales that span more
// than it. They are added to words that start as zero or, of all of a tile, may have a slot to themselves.
#pragma once

#include "quantize/factors.cuh"
#include "quantize/fp32_staging.cuh"
#include "quantize/groups.cuh"
#include "quantize/maxima.cuh"
#include "quantize/panel.cuh"
#include "quantize/params.cuh"
#include "quantize/tile_grid.cuh"
#include "quantize/values.cuh"

namespace mxjit {

template <class Config>
struct MaximaStaging {
  ValueStaging<Config> values;
  MaximaExchange<Config> exchange;
  typename If<grouped_columns<Config> || grouped_rows<Config>, GroupTable<Config::max_groups>>::type groups;
};

struct Fp32Maxima {
  using Params = QuantizeParams;
  template <class Config>
  using Staging = MaximaStaging<Config>;

  /// The parameters of one expert.
  template <class Config>
  static __device__ __forceinline__ Params expert(const Params& params, i64 index) {
    Params p = expert_data<Config>(params, index);
    if constexpr (Config::span == Span::row) {
      p.amax_row += index * p.m;
      p.amax_col += index * p.n;
    }
    return p;
  }

  template <class Config>
  static __device__ __forceinline__ void tile(const Params& p, Lane<Config> lane, Staging<Config>& staging) {
    static_assert(Lane<Config>::across == 16);
    using N = Pairs<Config::input>;
    using Pair = typename N::Pair;
    Pair x[Config::rows_per_lane][4];
    load_values<Config>(p, lane, staging.values, x);
    if constexpr (Config::span == Span::tensor) {
      Pair maxima[Config::rows_per_lane / 2];
      row_maxima<Config>(lane, x, staging.exchange, maxima);
      if (threadIdx.x == 0) {
        const u32 amax = largest_of<N>(maxima[0]);
        if (has_slots<Config> && p.passes == Passes::first) {
          ptx::st_global(p.amax_row + blockIdx.x, amax);
        } else {
          raise(p.amax_row, amax);
        }
      }
    } else {
      constexpr bool grouped = grouped_columns<Config> || grouped_rows<Config>;
      if constexpr (grouped) {
        if (threadIdx.x < 32) {
          read_groups<Config::group_alignment, Config::block_columns>(p, Config::groups_turned ? p.n : p.m,
                                                                      false, staging.groups);
        }
        __syncthreads();
      }
      if constexpr (grouped_rows<Config>) {
        const int group = staging.groups.owner(lane.tile_column, Lane<Config>::tile_columns, p.n);
        if (group < 0) {
          rows_of_groups<Config>(p, lane, x, staging);
        } else {
          rows<Config>(p, lane, x, group, staging);
        }
      } else if constexpr (Config::row) {
        rows<Config>(p, lane, x, 0, staging);
      }
      if constexpr (grouped_columns<Config>) {
        const int group = staging.groups.owner(lane.tile_row, Lane<Config>::tile_rows, p.m);
        if (group < 0) {
          columns_of_groups<Config>(p, lane, x, staging);
        } else {
          columns<Config>(p, lane, x, group, staging);
        }
      } else if constexpr (Config::col) {
        columns<Config>(p, lane, x, 0, staging);
      }
    }
  }

 private:
  static __device__ __forceinline__ void raise(u32* word, u32 amax) {
    if (amax != 0) atomicMax(word, amax);
  }

  template <class Config, class Pair>
  static __device__ __forceinline__ void rows(const Params& p, const Lane<Config>& lane,
                                              const Pair (&x)[Config::rows_per_lane][4], int group,
                                              Staging<Config>& staging) {
    using N = Pairs<Config::input>;
    Pair maxima[Config::rows_per_lane / 2];
    row_maxima<Config>(lane, x, staging.exchange, maxima);
    // All lanes beside each other know all maxima; every lane writes one.
    const int own = lane.index % 16;
    const Pair mine = pick(maxima, own / 2);
    const Pair one = own % 2 == 0 ? N::lows(mine, mine) : N::highs(mine, mine);
    if (own < lane.rows) raise(p.amax_row + group * p.m + lane.row + own, largest_of<N>(one));
  }

  template <class Config, class Pair>
  static __device__ __forceinline__ void columns(const Params& p, const Lane<Config>& lane,
                                                 const Pair (&x)[Config::rows_per_lane][4], int group,
                                                 Staging<Config>& staging) {
    using N = Pairs<Config::input>;
    tile_column_maxima<Config>(lane, x, staging.exchange, [&](int c, Pair most) {
      const Pair one = c % 2 == 0 ? N::lows(most, most) : N::highs(most, most);
      const i64 column = lane.tile_column + c;
      if (column < p.n) raise(p.amax_col + group * p.n + column, largest_of<N>(one));
    });
  }

  /// Of a tile whose columns several groups own, or none does: every lane by itself.
  template <class Config, class Pair>
  static __device__ __forceinline__ void rows_of_groups(const Params& p, const Lane<Config>& lane,
                                                        const Pair (&x)[Config::rows_per_lane][4],
                                                        const Staging<Config>& staging) {
    using N = Pairs<Config::input>;
#pragma unroll 1
    for (int c = 0; c < lane.columns;) {
      const int group = staging.groups.find(lane.column + c);
      if (group == staging.groups.count) break;
      const i64 last = staging.groups.ends[group] - lane.column;
      const int end = last < lane.columns ? static_cast<int>(last) : lane.columns;
      u32* amax = p.amax_row + group * p.m + lane.row;
#pragma unroll
      for (int r = 0; r < Config::rows_per_lane; ++r) {
        Pair most = {};
#pragma unroll
        for (int w = 0; w < 4; ++w) {
          if (2 * w >= c && 2 * w < end) most = N::max_abs(most, N::lows(x[r][w], x[r][w]));
          if (2 * w + 1 >= c && 2 * w + 1 < end) most = N::max_abs(most, N::highs(x[r][w], x[r][w]));
        }
        if (r < lane.rows) raise(amax + r, largest_of<N>(most));
      }
      c = end;
    }
  }

  /// Of a tile whose rows several groups own, or none does: every lane by itself.
  template <class Config, class Pair>
  static __device__ __forceinline__ void columns_of_groups(const Params& p, const Lane<Config>& lane,
                                                           const Pair (&x)[Config::rows_per_lane][4],
                                                           const Staging<Config>& staging) {
    using N = Pairs<Config::input>;
#pragma unroll 1
    for (int r = 0; r < lane.rows;) {
      const int group = staging.groups.find(lane.row + r);
      if (group == staging.groups.count) break;
      const i64 last = staging.groups.ends[group] - lane.row;
      const int end = last < lane.rows ? static_cast<int>(last) : lane.rows;
      u32* amax = p.amax_col + group * p.n + lane.column;
#pragma unroll
      for (int w = 0; w < 4; ++w) {
        Pair most = {};
#pragma unroll
        for (int i = 0; i < Config::rows_per_lane; ++i)
          if (i >= r && i < end) most = N::max_abs(most, x[i][w]);
        if (2 * w < lane.columns) raise(amax + 2 * w, largest_of<N>(N::lows(most, most)));
        if (2 * w + 1 < lane.columns) raise(amax + 2 * w + 1, largest_of<N>(N::highs(most, most)));
      }
      r = end;
    }
  }
};

}  // namespace mxjit
