// MX quantization of a matrix along its rows, down its columns, or both, reading it once.
//
// A thread block owns a tile of warps_m x warps_n panels, which stay in the warps' registers. A block along a
// row is four lanes; a block down a column is the rows of a lane and of its partner 16 lanes away. Row data
// leaves from the registers; column data is turned through shared memory, and the codes of both axes are
// gathered there. Elements outside the matrix count as zero: their code is 0, which is also what pads blocked
// scales.
#pragma once

#include "quantize/mx_codes.cuh"
#include "quantize/mx_numbers.cuh"
#include "quantize/panel.cuh"
#include "quantize/params.cuh"
#include "quantize/turned_tile.cuh"

namespace mxjit {

struct QuantizeMx {
  using Params = QuantizeMxParams;

  template <class Config>
  static __device__ __forceinline__ void run(const Params& params) {
    if constexpr (Config::batched) {
      const u32 tiles = params.tiles_m * params.tiles_n;
      run_tile<Config>(expert<Config>(params, blockIdx.x / tiles), blockIdx.x % tiles);
    } else {
      run_tile<Config>(params, blockIdx.x);
    }
  }

  /// The parameters of one expert.
  template <class Config>
  static __device__ __forceinline__ Params expert(Params p, i64 index) {
    constexpr bool blocked = Config::scale_layout == ScaleLayout::blocked;
    p.x = static_cast<const u8*>(p.x) + index * p.m * p.ld_x * Numbers<Config::input>::bytes;
    p.q_row += index * p.m * p.ld_q_row;
    p.q_col += index * p.n * p.ld_q_col;
    const i64 blocked_bytes = (p.m + 127) / 128 * ((p.n + 127) / 128) * 512;
    p.s_row += index * (blocked ? blocked_bytes : p.m * p.ld_s_row);
    p.s_col += index * (blocked ? blocked_bytes : p.n * p.ld_s_col);
    return p;
  }

  template <class Config>
  static __device__ __forceinline__ void run_tile(const Params& p, u32 tile) {
    using N = Numbers<Config::input>;
    constexpr int threads = 32 * Config::warps_m * Config::warps_n;
    constexpr int tile_rows = Lane<Config>::tile_rows;
    constexpr int tile_columns = Lane<Config>::tile_columns;

    const Lane<Config> lane(p, tile);
    typename N::Pair x[Config::rows_per_lane][4];
    load_panel<Config>(p, lane, x);

    __shared__ CodeTile row_codes[Config::warps_n];
    __shared__ CodeTile col_codes;
    __shared__ TurnedTile turned;
    if constexpr (Config::row) quantize_rows<Config>(p, lane, x, row_codes[lane.warp_n]);
    if constexpr (Config::col) quantize_columns<Config>(lane, x, col_codes, turned);
    __syncthreads();

    const i64 row = i64{lane.tile_m} * tile_rows, column = i64{lane.tile_n} * tile_columns;
    if constexpr (Config::row) {
      const ScaleMatrix s = {p.s_row, p.m, (p.n + 31) / 32, p.ld_s_row, row, column / 32, p.wide_s_row != 0};
      store_codes<Config::scale_layout, Config::warps_n, tile_rows, threads>(row_codes, s);
    }
    if constexpr (Config::col) {
      const ScaleMatrix s = {p.s_col, p.n, (p.m + 31) / 32, p.ld_s_col, column, row / 32, p.wide_s_col != 0};
      store_codes<Config::scale_layout, 1, tile_columns, threads>(&col_codes, s);
      turned.store<threads>(p.q_col + column * p.ld_q_col + row, p.ld_q_col, p.n - column, p.m - row,
                            p.wide_q_col != 0);
    }
  }

  template <class Config, class Pair>
  static __device__ __forceinline__ void quantize_rows(const Params& p, const Lane<Config>& lane,
                                                       const Pair (&x)[Config::rows_per_lane][4],
                                                       CodeTile& codes) {
    using N = Numbers<Config::input>;
#pragma unroll
    for (int r = 0; r < Config::rows_per_lane; r += 2) {
      // Two rows at a time: one half of `amax` each, once the even columns have met the odd ones.
      const Pair first = N::max_abs(N::max_abs(x[r][0], x[r][1]), N::max_abs(x[r][2], x[r][3]));
      const Pair second =
          N::max_abs(N::max_abs(x[r + 1][0], x[r + 1][1]), N::max_abs(x[r + 1][2], x[r + 1][3]));
      Pair amax = N::max_abs(N::lows(first, second), N::highs(first, second));
      amax = N::max_abs(amax, N::exchange(amax, 1));
      amax = N::max_abs(amax, N::exchange(amax, 2));

      const auto scales = N::template scales<Config::format, Config::rounding>(amax);
      if (lane.index % 4 == 0) {
        const int block = lane.index % 16 / 4;
        codes.set(lane.row_in_tile(r), block, scales.codes);
        codes.set(lane.row_in_tile(r + 1), block, scales.codes >> 16);
      }
      store_lane_row(p, lane, r, row_bytes<Config>(x[r], N::splat_low(scales.factors)));
      store_lane_row(p, lane, r + 1, row_bytes<Config>(x[r + 1], N::splat_high(scales.factors)));
    }
  }

  template <class Config, class Pair, class Factors>
  static __device__ __forceinline__ Vector2 row_bytes(const Pair (&x)[4], const Factors& f) {
    using N = Numbers<Config::input>;
    const Floats a = N::scaled(x[0], f), b = N::scaled(x[1], f), c = N::scaled(x[2], f),
                 d = N::scaled(x[3], f);
    return {pack4<Config::format>(a.low, a.high, b.low, b.high),
            pack4<Config::format>(c.low, c.high, d.low, d.high)};
  }

  template <class Config, class Pair>
  static __device__ __forceinline__ void quantize_columns(const Lane<Config>& lane,
                                                          const Pair (&x)[Config::rows_per_lane][4],
                                                          CodeTile& codes, TurnedTile& turned) {
    using N = Numbers<Config::input>;
    static_assert(Config::rows_per_lane == 16 && Config::warps_m == 4 && Config::warps_n == 1,
                  "columns need a tile of 128 x 128 and blocks of 32 rows a warp");
    const int column = lane.index % 16 * lane_columns;
    const int chunk = lane.row_in_tile(0) / 16;
#pragma unroll
    for (int w = 0; w < 4; ++w) {
      Pair amax = x[0][w];
#pragma unroll
      for (int r = 1; r < 16; ++r) amax = N::max_abs(amax, x[r][w]);
      amax = N::max_abs(amax, N::exchange(amax, 16));

      const auto scales = N::template scales<Config::format, Config::rounding>(amax);
      if (lane.index < 16) {
        codes.set(column + 2 * w, lane.warp_m, scales.codes);
        codes.set(column + 2 * w + 1, lane.warp_m, scales.codes >> 16);
      }
      u32 low[4], high[4];  // 16 bytes of the even and of the odd column
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const Floats a = N::scaled(x[4 * i][w], scales.factors),
                     b = N::scaled(x[4 * i + 1][w], scales.factors);
        const Floats c = N::scaled(x[4 * i + 2][w], scales.factors),
                     d = N::scaled(x[4 * i + 3][w], scales.factors);
        low[i] = pack4<Config::format>(a.low, b.low, c.low, d.low);
        high[i] = pack4<Config::format>(a.high, b.high, c.high, d.high);
      }
      turned.put(column + 2 * w, chunk, {low[0], low[1], low[2], low[3]});
      turned.put(column + 2 * w + 1, chunk, {high[0], high[1], high[2], high[3]});
    }
  }
};

}  // namespace mxjit
