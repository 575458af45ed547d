// MX quantization of a matrix along its rows, down its columns, or both, reading it once.
//
// A thread block owns a tile of warps_m x warps_n panels, which stay in the warps' registers. A block along a
// row is four lanes; a block down a column is the rows of a panel's lanes above each other. Row data
// leaves from the registers. Column data is turned through shared memory, so that it leaves in runs as long
// as the tile is high, and so do the codes of both axes. Elements outside the matrix count as zero: their
// code is 0, which is also what pads blocked scales.
#pragma once

#include "quantize/maxima.cuh"
#include "quantize/mx_codes.cuh"
#include "quantize/mx_groups.cuh"
#include "quantize/mx_numbers.cuh"
#include "quantize/mx_staging.cuh"
#include "quantize/panel.cuh"
#include "quantize/params.cuh"
#include "quantize/tile_grid.cuh"
#include "quantize/values.cuh"

namespace mxjit {

struct QuantizeMx {
  using Params = QuantizeParams;

  template <class Config>
  using Staging = MxStaging<Config>;

  template <class Config>
  static __device__ __forceinline__ void run(const Params& params) {
    walk_tiles<QuantizeMx, Config>(params);
  }

  /// The parameters of one expert.
  template <class Config>
  static __device__ __forceinline__ Params expert(const Params& params, i64 index) {
    Params p = expert_data<Config>(params, index);
    p.s_row = static_cast<u8*>(p.s_row) + index * scale_bytes<Config>(p.m, p.n, p.ld_s_row);
    p.s_col = static_cast<u8*>(p.s_col) + index * scale_bytes<Config>(p.n, p.m, p.ld_s_col);
    return p;
  }

  template <class Config>
  static __device__ __forceinline__ void tile(const Params& p, Lane<Config> lane, Staging<Config>& staging) {
    constexpr int bands = Staging<Config>::bands;
    typename Numbers<Config::input>::Pair x[Config::rows_per_lane][4];
    load_values<Config>(p, lane, staging.values, x);
    store_high<Config>(p, lane, x);
    if constexpr (Config::group_alignment > 0) {
      const bool report = lane.tile_row == 0 && lane.tile_column == 0;
      if (threadIdx.x < 32 && (places_m<Config> || places_k<Config> || report)) {
        read_groups<Config::group_alignment, Config::block_columns>(p, Config::groups_turned ? p.n : p.m,
                                                                    report, staging.groups);
      }
    }
    if constexpr (Config::row) quantize_rows<Config>(p, lane, x, staging);
    if constexpr (Config::col) {
      if (ValueStaging<Config>::computed) __syncthreads();  // the turned tile takes their place
      quantize_columns<Config>(lane, x, staging);
    }
    __syncthreads();
    if constexpr (Config::row) {
      ScaleMatrix s = {static_cast<u8*>(p.s_row),
                       p.m,
                       ceil_div(p.n, Config::block_columns),
                       p.ld_s_row,
                       lane.tile_row,
                       lane.tile_column / Config::block_columns,
                       (p.wide & wide_s_row) != 0};
      for (int band = 0; band < bands; ++band, s.row += 128) {
        store_axis_codes<Config, !Config::groups_turned, RowCodes<Config>>(p, lane, staging,
                                                                           staging.row_codes[band], s);
      }
    }
    if constexpr (Config::col) {
      staging.turned.template store<Config::threads>(p.q_col + lane.tile_column * p.ld_q_col + lane.tile_row,
                                                     p.ld_q_col, p.n - lane.tile_column, p.m - lane.tile_row,
                                                     (p.wide & wide_q_col) != 0);
      const ScaleMatrix s = {static_cast<u8*>(p.s_col),
                             p.n,
                             ceil_div(p.m, Config::block_columns),
                             p.ld_s_col,
                             lane.tile_column,
                             lane.tile_row / Config::block_columns,
                             (p.wide & wide_s_col) != 0};
      store_axis_codes<Config, Config::groups_turned, ColCodes<Config>>(p, lane, staging, staging.col_codes,
                                                                        s);
    }
  }

 private:
  // Where groups place codes: those of groups along the rows of a scale matrix, unless they start on tiles,
  // and those of groups along its columns. Plain codes lie as without groups.
  template <class Config>
  static constexpr bool blocked_groups =
      Config::scale_layout == ScaleLayout::blocked&& Config::group_alignment > 0;
  template <class Config>
  static constexpr bool places_m = blocked_groups<Config>&& Config::group_alignment < 128 &&
                                   (Config::groups_turned ? Config::col : Config::row);
  template <class Config>
  static constexpr bool places_k = blocked_groups<Config> &&
                                   (Config::groups_turned ? Config::row : Config::col);

  /// What a thread block has of one axis: `count` tiles of codes beside each other, `rows` rows and `blocks`
  /// blocks of each.
  template <class Config>
  struct RowCodes {
    static constexpr int count = MxStaging<Config>::panels, rows = MxStaging<Config>::band_rows;
    static constexpr int blocks = Lane<Config>::tile_columns / count / Config::block_columns;
  };
  template <class Config>
  struct ColCodes {
    static constexpr int count = MxStaging<Config>::bands, rows = Lane<Config>::tile_columns;
    static constexpr int blocks = MxStaging<Config>::band_rows / Config::block_columns;
  };

  /// The codes of one axis; `along_m`: its rows are those that groups divide.
  template <class Config, bool along_m, class Codes>
  static __device__ __forceinline__ void store_axis_codes(const Params& p, const Lane<Config>& lane,
                                                          const Staging<Config>& staging,
                                                          const CodeTile* tiles, const ScaleMatrix& s) {
    // Groups of rows without elements have no codes; the grid runs for their ends.
    if (Config::group_alignment > 0 && (Config::groups_turned ? p.m : p.n) == 0) return;
    if constexpr (along_m && places_m<Config>) {
      store_grouped_row_codes<128 / Config::block_columns, Config::threads>(staging.groups, tiles[0], s,
                                                                            p.groups, number_of(p, lane));
    } else if constexpr (!along_m && places_k<Config>) {
      store_grouped_col_codes<Config::block_columns, Config::threads>(staging.groups, tiles[0], s, p.groups,
                                                                      number_of(p, lane));
    } else {
      store_codes<Config, Codes>(tiles, s);
    }
  }

  /// Bytes of the scale matrix of `rows` rows that are `length` elements long.
  template <class Config>
  static __device__ __forceinline__ i64 scale_bytes(i64 rows, i64 length, i64 pitch) {
    if (Config::scale_layout == ScaleLayout::plain) return ceil_div(rows, Config::block_rows) * pitch;
    return ceil_div(rows, 128) * ceil_div(ceil_div(length, Config::block_columns), 4) * 512;
  }

  static __device__ __forceinline__ i64 ceil_div(i64 value, int by) { return (value + by - 1) / by; }

  template <class Config>
  static __device__ __forceinline__ TileNumber number_of(const Params& p, const Lane<Config>& lane) {
    using L = Lane<Config>;
    const i64 tiles_m = p.m > 0 ? ceil_div(p.m, L::tile_rows) : 1;
    return {lane.tile_row / L::tile_rows * p.tiles_n + lane.tile_column / L::tile_columns,
            tiles_m * p.tiles_n};
  }

  template <class Config, class Codes>
  static __device__ __forceinline__ void store_codes(const CodeTile* tiles, const ScaleMatrix& s) {
    constexpr int rows = Codes::rows, count = Codes::count, blocks = Codes::blocks;
    if constexpr (Config::scale_layout == ScaleLayout::blocked) {
      if constexpr (rows == 128 && (blocks == 4 || Config::block_columns == 128)) {
        if (s.row < s.rows) store_blocked_codes<blocks, count, Config::threads>(tiles, s);
      } else {
        static_assert(count == 1, "a part of a tile");
        store_blocked_part<rows, blocks, Config::threads>(tiles[0], s);
      }
    } else {
      if (s.row >= s.rows) return;
      store_plain_codes<Config::block_rows, blocks, count, rows, Config::threads>(tiles, s);
    }
  }

  template <class Config, class Pair>
  static __device__ __forceinline__ void quantize_rows(const Params& p, const Lane<Config>& lane,
                                                       Pair (&x)[Config::rows_per_lane][4],
                                                       Staging<Config>& staging) {
    using N = Numbers<Config::input>;
    constexpr int pairs = Config::rows_per_lane / 2;
    Pair maxima[pairs];
    row_maxima<Config>(lane, x, staging.exchange, maxima);

    const auto scales_of = [](Pair amax) {
      return N::template scales<Config::format, Config::rounding>(amax);
    };
    RowBytes<Config> bytes(p, lane);
    u32 kept[(pairs + 3) / 4];  // the four lanes of a block keep the codes of a pair of rows in turn
#pragma unroll
    for (int i = 0; i < pairs; ++i) {
      const auto scales = scales_of(maxima[Config::block_rows > 1 ? 0 : i]);
      if (i % 4 == 0 || lane.index % 4 == i % 4) kept[i / 4] = scales.codes;
      bytes.store_wide(2 * i, row_bytes<Config>(x[2 * i], N::splat_low(scales.factors)));
      bytes.store_wide(2 * i + 1, row_bytes<Config>(x[2 * i + 1], N::splat_high(scales.factors)));
    }
    bytes.store_narrow(x, [&](int r, const Pair(&row)[4]) {
      const auto scales = scales_of(Config::block_rows > 1 ? maxima[0] : pick(maxima, r / 2));
      return row_bytes<Config>(row,
                               r % 2 == 0 ? N::splat_low(scales.factors) : N::splat_high(scales.factors));
    });
    CodeTile& codes = staging.row_codes[lane.row_in_tile / 128][lane.column_in_tile / 128];
    const int block = lane.column_in_tile % 128 / Config::block_columns;
#pragma unroll
    for (int i = 0; i < (pairs + 3) / 4; ++i) {
      const int r = 2 * (4 * i + lane.index % 4), row = lane.row_in_tile % 128 + r;
      if (pairs % 4 != 0 && r >= Config::rows_per_lane) continue;
      // Rows below the matrix share a tall block with rows inside it, but pad with 0.
      codes.set(row, block, r < lane.rows ? kept[i] : 0);
      codes.set(row + 1, block, r + 1 < lane.rows ? kept[i] >> 16 : 0);
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
                                                          Staging<Config>& staging) {
    using N = Numbers<Config::input>;
    static_assert(Lane<Config>::panel_rows == 32, "a panel is as high as a block");
    static_assert(Lane<Config>::tile_columns <= 128, "as wide as a tile of codes");
    constexpr int words = Config::rows_per_lane / 4;
    Pair maxima[4];
    column_maxima<Config>(lane, x, staging.exchange, maxima);
    const int block = lane.row_in_tile % 128 / Config::block_columns;
    CodeTile& codes = staging.col_codes[lane.row_in_tile / 128];
    const int column = lane.column_in_tile, row = lane.row_in_tile;
    const int below = lane.index / Lane<Config>::across, odd = below % 2;
#pragma unroll
    for (int w = 0; w < 4; ++w) {
      const auto scales = N::template scales<Config::format, Config::rounding>(maxima[w]);
      // Of two lanes below each other one sets the even column's code, one the odd one's.
      const int own = 2 * w + odd;
      const u32 code = own < lane.columns ? scales.codes >> 16 * odd : 0;
      if (w % (Lane<Config>::below / 2) == below / 2) codes.set(column + own, block, code);
      u32 low[words], high[words];  // bytes of the even and of the odd column
#pragma unroll
      for (int i = 0; i < words; ++i) {
        const Floats a = N::scaled(x[4 * i][w], scales.factors),
                     b = N::scaled(x[4 * i + 1][w], scales.factors);
        const Floats c = N::scaled(x[4 * i + 2][w], scales.factors),
                     d = N::scaled(x[4 * i + 3][w], scales.factors);
        low[i] = pack4<Config::format>(a.low, b.low, c.low, d.low);
        high[i] = pack4<Config::format>(a.high, b.high, c.high, d.high);
      }
      staging.turned.put(column + 2 * w, row, low);
      staging.turned.put(column + 2 * w + 1, row, high);
    }
  }
};

}  // namespace mxjit
