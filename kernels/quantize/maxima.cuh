// Largest magnitudes of blocks, from the pairs of a warp's panel. Every lane ends with those of its own
// blocks.
#pragma once

#include "quantize/pairs.cuh"
#include "quantize/panel.cuh"

namespace mxjit {

/// What warps tell each other where a block is taller than a panel: a pair for every two columns.
template <class Config>
struct MaximaExchange {
  using Pair = typename Pairs<Config::input>::Pair;
  Pair pairs[Config::warps_m][Lane<Config>::panel_columns / 2];
};

/// The larger of both halves, in both halves.
template <class N>
__device__ __forceinline__ typename N::Pair both(typename N::Pair a) {
  return N::max_abs(N::lows(a, a), N::highs(a, a));
}

template <class N>
__device__ __forceinline__ typename N::Pair across_lanes(typename N::Pair a, u32 mask) {
  return N::max_abs(a, N::exchange(a, mask));
}

/// Blocks along rows. maxima[i]: row 2 * i in the low half, row 2 * i + 1 in the high one. Where blocks are
/// 32 or more rows tall, maxima[0] is the only one, the same in both halves.
template <class Config, class Exchange, class Pair>
__device__ __forceinline__ void row_maxima(const Lane<Config>& lane,
                                           const Pair (&x)[Config::rows_per_lane][4], Exchange& exchange,
                                           Pair (&maxima)[Config::rows_per_lane / 2]) {
  using N = Pairs<Config::input>;
  constexpr bool tall = Config::block_rows > 1;
  static_assert(Lane<Config>::across == 16 || (!tall && Config::block_columns == 32), "a panel has more");
#pragma unroll
  for (int i = 0; i < Config::rows_per_lane / 2; ++i) {
    const Pair(&a)[4] = x[2 * i];
    const Pair(&b)[4] = x[2 * i + 1];
    const Pair first = N::max_abs(N::max_abs(a[0], a[1]), N::max_abs(a[2], a[3]));
    const Pair second = N::max_abs(N::max_abs(b[0], b[1]), N::max_abs(b[2], b[3]));
    maxima[i] = N::max_abs(N::lows(first, second), N::highs(first, second));
    if (tall && i > 0) maxima[0] = N::max_abs(maxima[0], maxima[i]);
  }
  if constexpr (tall) maxima[0] = across_lanes<N>(both<N>(maxima[0]), 16);
#pragma unroll
  for (int i = 0; i < (tall ? 1 : Config::rows_per_lane / 2); ++i) {
    maxima[i] = across_lanes<N>(across_lanes<N>(maxima[i], 1), 2);
    if (Config::block_columns == 128) maxima[i] = across_lanes<N>(across_lanes<N>(maxima[i], 4), 8);
  }
  if constexpr (Config::block_rows > Lane<Config>::panel_rows) {
    static_assert(Lane<Config>::tile_rows == Config::block_rows && Config::warps_n == 1,
                  "a tile is one block");
    if (lane.index == 0) exchange.pairs[lane.warp_m][0] = maxima[0];
    __syncthreads();
    for (int w = 0; w < Config::warps_m; ++w) maxima[0] = N::max_abs(maxima[0], exchange.pairs[w][0]);
    __syncthreads();
  }
}

/// Down the lane's rows. maxima[w]: its columns 2 * w and 2 * w + 1.
template <class Config, class Pair>
__device__ __forceinline__ void lane_column_maxima(const Pair (&x)[Config::rows_per_lane][4],
                                                   Pair (&maxima)[4]) {
  using N = Pairs<Config::input>;
#pragma unroll
  for (int w = 0; w < 4; ++w) {
    maxima[w] = x[0][w];
#pragma unroll
    for (int r = 1; r < Config::rows_per_lane; ++r) maxima[w] = N::max_abs(maxima[w], x[r][w]);
  }
}

/// Down all rows of a tile that is one panel wide: calls visit(column, maxima of its pair of columns), every
/// column by one thread of the block.
template <class Config, class Exchange, class Pair, class Visit>
__device__ __forceinline__ void tile_column_maxima(const Lane<Config>& lane,
                                                   const Pair (&x)[Config::rows_per_lane][4],
                                                   Exchange& exchange, const Visit& visit) {
  using N = Pairs<Config::input>;
  Pair maxima[4];
  lane_column_maxima<Config>(x, maxima);
#pragma unroll
  for (int w = 0; w < 4; ++w) {
    maxima[w] = across_lanes<N>(maxima[w], 16);
    if (lane.index < 16) exchange.pairs[lane.warp_m][lane.index * 4 + w] = maxima[w];
  }
  __syncthreads();
  constexpr int columns = Lane<Config>::panel_columns;
  for (int column = static_cast<int>(threadIdx.x); column < columns; column += Config::threads) {
    Pair most = exchange.pairs[0][column / 2];
    for (int warp = 1; warp < Config::warps_m; ++warp)
      most = N::max_abs(most, exchange.pairs[warp][column / 2]);
    visit(column, most);
  }
}

/// Blocks down columns. maxima[w]: columns 2 * w and 2 * w + 1 of the lane.
template <class Config, class Exchange, class Pair>
__device__ __forceinline__ void column_maxima(const Lane<Config>& lane,
                                              const Pair (&x)[Config::rows_per_lane][4], Exchange& exchange,
                                              Pair (&maxima)[4]) {
  using N = Pairs<Config::input>;
  constexpr bool tall = Config::block_rows > 1;
  static_assert(Lane<Config>::across == 16 || (!tall && Config::block_columns == 32), "a panel has more");
  lane_column_maxima<Config>(x, maxima);
  if constexpr (!tall) {
#pragma unroll
    for (int w = 0; w < 4; ++w)
#pragma unroll
      for (u32 mask = Lane<Config>::across; mask < 32; mask *= 2)
        maxima[w] = across_lanes<N>(maxima[w], mask);
  } else {
    Pair most = N::max_abs(N::max_abs(maxima[0], maxima[1]), N::max_abs(maxima[2], maxima[3]));
    most = across_lanes<N>(across_lanes<N>(across_lanes<N>(both<N>(most), 16), 1), 2);
    if (Config::block_rows == 128) most = across_lanes<N>(across_lanes<N>(most, 4), 8);
#pragma unroll
    for (int w = 0; w < 4; ++w) maxima[w] = most;
  }
  if constexpr (Config::block_columns == 128) {
    static_assert(Lane<Config>::tile_rows == 128 && Config::warps_n == 1, "a tile is one block high");
    const int first = lane.index % 16 * 4;
    if (lane.index < 16) {
#pragma unroll
      for (int w = 0; w < 4; ++w) exchange.pairs[lane.warp_m][first + w] = maxima[w];
    }
    __syncthreads();
#pragma unroll
    for (int w = 0; w < 4; ++w) {
      for (int warp = 0; warp < Config::warps_m; ++warp) {
        maxima[w] = N::max_abs(maxima[w], exchange.pairs[warp][first + w]);
      }
    }
    __syncthreads();
  }
}

}  // namespace mxjit
