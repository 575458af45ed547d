// Quantization of a matrix with float scales along its rows, down its columns, or both, reading it once.
//
// The tiles, and the way of bytes out of them, are those of mx.cuh; a tile is as wide, or high, as a block of
// 128. Where a scale spans a row, a column or the tensor, a pass before this one has found the largest
// magnitudes: fp32_passes.cuh.
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

struct QuantizeFp32 {
  using Params = QuantizeParams;
  template <class Config>
  using Staging = Fp32Staging<Config>;

  template <class Config>
  static __device__ __forceinline__ void run(const Params& params) {
    walk_tiles<QuantizeFp32, Config>(params);
  }

  /// The parameters of one expert.
  template <class Config>
  static __device__ __forceinline__ Params expert(const Params& params, i64 index) {
    Params p = expert_data<Config>(params, index);
    if constexpr (Config::span != Span::tensor) {
      p.s_row = static_cast<float*>(p.s_row) + index * scale_count<Config>(p.m, p.n, p.ld_s_row);
      p.s_col = static_cast<float*>(p.s_col) + index * scale_count<Config>(p.n, p.m, p.ld_s_col);
      p.amax_row += index * p.m;
      p.amax_col += index * p.n;
    }
    return p;
  }

  template <class Config>
  static __device__ __forceinline__ void tile(const Params& p, Lane<Config> lane, Staging<Config>& staging) {
    static_assert(Lane<Config>::across == 16);
    typename Pairs<Config::input>::Pair x[Config::rows_per_lane][4];
    load_values<Config>(p, lane, staging.values, x);
    store_high<Config>(p, lane, x);
    if constexpr (Config::group_alignment > 0) {
      const bool report = lane.tile_row == 0 && lane.tile_column == 0;
      constexpr bool grouped = grouped_columns<Config> || grouped_rows<Config>;
      if (threadIdx.x < 32 && (grouped || report)) {
        read_groups<Config::group_alignment, Config::block_columns>(p, Config::groups_turned ? p.n : p.m,
                                                                    report, staging.groups);
      }
      if (grouped) __syncthreads();
    }
    // The one group that owns the tile's rows or columns, or none.
    int group = 0;
    if constexpr (grouped_columns<Config>)
      group = staging.groups.owner(lane.tile_row, Lane<Config>::tile_rows, p.m);
    if constexpr (grouped_rows<Config>)
      group = staging.groups.owner(lane.tile_column, Lane<Config>::tile_columns, p.n);
    if constexpr (Config::span == Span::block) {
      block_factors<Config>(p, lane, x, staging);
    } else {
      known_factors<Config>(p, lane, group, staging);
    }
    __syncthreads();  // factors are there, and a turned tile may take the values' place
    if constexpr (grouped_rows<Config>) {
      if (group < 0) {
        quantize_grouped_rows<Config>(p, lane, x, staging);
      } else {
        quantize_rows<Config>(p, lane, x, staging);
      }
    } else if constexpr (Config::row) {
      quantize_rows<Config>(p, lane, x, staging);
    }
    if constexpr (Config::col) {
      quantize_columns<Config>(p, lane, x, group, staging);
      __syncthreads();
      staging.turned.template store<Config::threads>(p.q_col + lane.tile_column * p.ld_q_col + lane.tile_row,
                                                     p.ld_q_col, p.n - lane.tile_column, p.m - lane.tile_row,
                                                     (p.wide & wide_q_col) != 0);
    }
    store_scales_of_tile<Config>(p, lane, staging);
  }

 private:
  static __device__ __forceinline__ i64 ceil_div(i64 value, int by) { return (value + by - 1) / by; }

  /// Scales of `rows` rows that are `length` elements long.
  template <class Config>
  static __device__ __forceinline__ i64 scale_count(i64 rows, i64 length, i64 pitch) {
    if (Config::span == Span::row) return rows;
    if (Config::scale_layout == ScaleLayout::mn_major) return ceil_div(length, Config::block_columns) * pitch;
    return ceil_div(rows, Config::block_rows) * pitch;
  }

  template <class Config>
  static __device__ __forceinline__ float factor(const Params& p, u32 amax) {
    return factor_of<Config::format, Config::rounding>(amax, p.amax_cap);
  }

  // ---- factors, into shared memory

  /// Of blocks that lie in the tile.
  template <class Config, class Pair>
  static __device__ __forceinline__ void block_factors(const Params& p, const Lane<Config>& lane,
                                                       const Pair (&x)[Config::rows_per_lane][4],
                                                       Staging<Config>& staging) {
    using N = Pairs<Config::input>;
    constexpr int rows = Config::rows_per_lane;
    if constexpr (Config::row || one_factor<Config>) {
      Pair maxima[rows / 2];
      row_maxima<Config>(lane, x, staging.exchange, maxima);
      if constexpr (one_factor<Config>) {
        if (threadIdx.x == 0) staging.factor = factor<Config>(p, largest_of<N>(maxima[0]));
      } else {
        // All lanes beside each other know all maxima; every lane divides for a row.
        const int own = lane.index % 16;
        const Pair mine = pick(maxima, own / 2);
        const Floats wide = N::widen(mine);
        const float amax = own % 2 == 0 ? wide.low : wide.high;
        if (own < rows)
          staging.row_factors.of[lane.warp_n][lane.row_in_tile + own] =
              factor<Config>(p, __float_as_uint(amax));
      }
    }
    if constexpr (Config::col && !one_factor<Config>) {
      tile_column_maxima<Config>(lane, x, staging.exchange, [&](int column, Pair most) {
        const Floats wide = N::widen(most);
        staging.col_factors.of[column] =
            factor<Config>(p, __float_as_uint(column % 2 == 0 ? wide.low : wide.high));
      });
    }
  }

  /// From largest magnitudes that the pass before has found.
  template <class Config>
  static __device__ __forceinline__ void known_factors(const Params& p, const Lane<Config>& lane, int group,
                                                       Staging<Config>& staging) {
    const int thread = static_cast<int>(threadIdx.x);
    if constexpr (one_factor<Config>) {
      if constexpr (has_slots<Config>) {
        if (p.passes == Passes::second) return factor_of_slots<Config>(p, staging);
      }
      if (thread == 0) staging.factor = factor<Config>(p, ptx::ld_relaxed(p.amax_row));
    } else {
      if constexpr (Config::row) {
        const u32* const amax = p.amax_row + (grouped_rows<Config> && group > 0 ? group * p.m : 0);
        for (int r = thread; r < Lane<Config>::tile_rows; r += Config::threads) {
          const i64 row = lane.tile_row + r;
          staging.row_factors.of[0][r] = factor<Config>(p, row < p.m ? ptx::ld_relaxed(amax + row) : 0);
        }
      }
      if constexpr (Config::col) {
        if (grouped_columns<Config> && group < 0) return;
        const u32* const amax = p.amax_col + (grouped_columns<Config> ? group * p.n : 0);
        for (int c = thread; c < Lane<Config>::tile_columns; c += Config::threads) {
          const i64 column = lane.tile_column + c;
          staging.col_factors.of[c] = factor<Config>(p, column < p.n ? ptx::ld_relaxed(amax + column) : 0);
        }
      }
    }
  }

  /// From a largest magnitude for each thread block of the launch before this one.
  template <class Config>
  static __device__ __forceinline__ void factor_of_slots(const Params& p, Staging<Config>& staging) {
    const u32 thread = threadIdx.x;
    constexpr u32 most_of_thread = (most_slots + Config::threads - 1) / Config::threads;
    u32 found[most_of_thread], most = 0;
#pragma unroll
    for (u32 i = 0, slot = thread; i < most_of_thread; ++i, slot += Config::threads)
      found[i] = slot < gridDim.x ? ptx::ld_relaxed(p.amax_row + slot) : 0;
#pragma unroll
    for (const u32 amax : found) most = amax > most ? amax : most;
#pragma unroll
    for (u32 mask = 16; mask > 0; mask /= 2) {
      const u32 other = ptx::shfl_xor(most, mask);
      most = other > most ? other : most;
    }
    if (thread % 32 == 0) staging.slots.of[thread / 32] = most;
    __syncthreads();
    if (thread == 0) {
      for (const u32 amax : staging.slots.of) most = amax > most ? amax : most;
      staging.factor = factor<Config>(p, most);
    }
  }

  // ---- bytes

  template <int count>
  static __device__ __forceinline__ void read_factors(const float* from, float (&to)[count]) {
#pragma unroll
    for (int i = 0; i < count; i += 4) {
      const Vector4 v = *reinterpret_cast<const Vector4*>(from + i);
      to[i] = __uint_as_float(v.x), to[i + 1] = __uint_as_float(v.y);
      to[i + 2] = __uint_as_float(v.z), to[i + 3] = __uint_as_float(v.w);
    }
  }

  template <class Config, class Pair>
  static __device__ __forceinline__ void quantize_rows(const Params& p, const Lane<Config>& lane,
                                                       Pair (&x)[Config::rows_per_lane][4],
                                                       const Staging<Config>& staging) {
    using N = Pairs<Config::input>;
    const auto scaled = [](const Pair(&row)[4], float f) {
      return Vector2{scaled_bytes<Config::format, N>(row[0], row[1], f),
                     scaled_bytes<Config::format, N>(row[2], row[3], f)};
    };
    const float* all = nullptr;
    float factors[Config::rows_per_lane];
    if constexpr (!one_factor<Config>) {
      all = &staging.row_factors.of[Config::span == Span::block ? lane.warp_n : 0][lane.row_in_tile];
      read_factors(all, factors);
    }
    RowBytes<Config> bytes(p, lane);
#pragma unroll
    for (int r = 0; r < Config::rows_per_lane; ++r)
      bytes.store_wide(r, scaled(x[r], one_factor<Config> ? staging.factor : factors[r]));
    bytes.store_narrow(x, [&](int r, const Pair(&row)[4]) {
      return scaled(row, one_factor<Config> ? staging.factor : all[r]);
    });
  }

  /// Where several groups own the lane's columns, or none does: then their bytes are zero.
  template <class Config, class Pair>
  static __device__ __forceinline__ void quantize_grouped_rows(const Params& p, const Lane<Config>& lane,
                                                               const Pair (&x)[Config::rows_per_lane][4],
                                                               const Staging<Config>& staging) {
    using N = Pairs<Config::input>;
    // Row by row, for the elements of one row are as many as registers are left for.
#pragma unroll
    for (int r = 0; r < Config::rows_per_lane; ++r) {
      if (r >= lane.rows) continue;
      u8* const to = p.q_row + (lane.row + r) * p.ld_q_row + lane.column;
#pragma unroll 1
      for (int c = 0; c < lane.columns;) {
        const int group = staging.groups.find(lane.column + c);
        const bool owned = group < staging.groups.count;
        const i64 last = owned ? staging.groups.ends[group] - lane.column : lane.columns;
        const int end = last < lane.columns ? static_cast<int>(last) : lane.columns;
        const float f =
            factor<Config>(p, owned ? ptx::ld_relaxed(p.amax_row + group * p.m + lane.row + r) : 0);
        const u64 bytes = u64{scaled_bytes<Config::format, N>(x[r][2], x[r][3], f)} << 32 |
                          scaled_bytes<Config::format, N>(x[r][0], x[r][1], f);
#pragma unroll 1
        for (; c < end; ++c) ptx::st_global(to + c, static_cast<u8>(owned ? bytes >> 8 * c : 0));
      }
    }
  }

  /// 16 bytes of columns 2 * w and 2 * w + 1 of the lane.
  template <class Config, class Pair>
  static __device__ __forceinline__ void column_bytes(const Pair (&x)[Config::rows_per_lane][4], int w,
                                                      float factor_low, float factor_high, u32 (&low)[4],
                                                      u32 (&high)[4]) {
    using N = Pairs<Config::input>;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const Floats a = N::widen(x[4 * i][w]), b = N::widen(x[4 * i + 1][w]), c = N::widen(x[4 * i + 2][w]),
                   d = N::widen(x[4 * i + 3][w]);
      low[i] = pack4<Config::format>(a.low * factor_low, b.low * factor_low, c.low * factor_low,
                                     d.low * factor_low);
      high[i] = pack4<Config::format>(a.high * factor_high, b.high * factor_high, c.high * factor_high,
                                      d.high * factor_high);
    }
  }

  /// The bytes of rows [begin, end) of four.
  static __device__ __forceinline__ u32 rows_mask(int begin, int end) {
    begin = begin < 0 ? 0 : begin > 4 ? 4 : begin;
    end = end < 0 ? 0 : end > 4 ? 4 : end;
    return static_cast<u32>((u64{1} << 8 * end) - (u64{1} << 8 * begin));
  }

  /// As column_bytes, where several groups own the lane's rows, or none does: then they are zero.
  template <class Config, class Pair>
  static __device__ __forceinline__ void grouped_column_bytes(const Params& p, const Lane<Config>& lane,
                                                              const Pair (&x)[Config::rows_per_lane][4],
                                                              int w, const Staging<Config>& staging,
                                                              u32 (&low)[4], u32 (&high)[4]) {
    const int left = lane.columns - 2 * w;
#pragma unroll
    for (int i = 0; i < 4; ++i) low[i] = high[i] = 0;
#pragma unroll 1
    for (int r = 0; r < lane.rows;) {
      const int group = staging.groups.find(lane.row + r);
      if (group == staging.groups.count) break;
      const i64 last = staging.groups.ends[group] - lane.row;
      const int end = last < lane.rows ? static_cast<int>(last) : lane.rows;
      const u32* amax = p.amax_col + group * p.n + lane.column + 2 * w;
      u32 a[4], b[4];
      column_bytes<Config>(x, w, factor<Config>(p, left > 0 ? ptx::ld_relaxed(amax) : 0),
                           factor<Config>(p, left > 1 ? ptx::ld_relaxed(amax + 1) : 0), a, b);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const u32 mask = rows_mask(r - 4 * i, end - 4 * i);
        low[i] |= a[i] & mask;
        high[i] |= b[i] & mask;
      }
      r = end;
    }
  }

  template <class Config, class Pair>
  static __device__ __forceinline__ void quantize_columns(const Params& p, const Lane<Config>& lane,
                                                          const Pair (&x)[Config::rows_per_lane][4],
                                                          int group, Staging<Config>& staging) {
    static_assert(Config::rows_per_lane == 16 && Config::warps_n == 1, "a lane has a chunk of every column");
    const int column = lane.column_in_tile, row = lane.row_in_tile;
    float factors[lane_columns];
    if constexpr (!one_factor<Config>) read_factors(&staging.col_factors.of[column], factors);
#pragma unroll
    for (int w = 0; w < 4; ++w) {
      const float factor_low = one_factor<Config> ? staging.factor : factors[2 * w];
      const float factor_high = one_factor<Config> ? staging.factor : factors[2 * w + 1];
      u32 low[4], high[4];
      if constexpr (grouped_columns<Config>) {
        if (group < 0) {
          grouped_column_bytes<Config>(p, lane, x, w, staging, low, high);
        } else {
          column_bytes<Config>(x, w, factor_low, factor_high, low, high);
        }
      } else {
        column_bytes<Config>(x, w, factor_low, factor_high, low, high);
      }
      staging.turned.put(column + 2 * w, row, low);
      staging.turned.put(column + 2 * w + 1, row, high);
    }
  }

  // ---- scales

  template <class Config>
  static __device__ __forceinline__ void store_scales_of_tile(const Params& p, const Lane<Config>& lane,
                                                              const Staging<Config>& staging) {
    float* const s_row = static_cast<float*>(p.s_row);
    float* const s_col = static_cast<float*>(p.s_col);
    const int thread = static_cast<int>(threadIdx.x);
    if constexpr (Config::span == Span::tensor) {
      if (lane.tile_row == 0 && lane.tile_column == 0 && thread == 0) {
        if (Config::row) store_float(s_row, scale_of(staging.factor));
        if (Config::col) store_float(s_col, scale_of(staging.factor));
      }
    } else if constexpr (Config::span == Span::block) {
      constexpr bool together = one_factor<Config>;
      if constexpr (Config::row) {
        const FloatScales s = {s_row, ceil_div(p.m, Config::block_rows), ceil_div(p.n, Config::block_columns),
                               p.ld_s_row};
        store_scales<Config::scale_layout, Lane<Config>::tile_rows, Config::warps_n, Config::threads,
                     together>(s, lane.tile_row / Config::block_rows,
                               lane.tile_column / Config::block_columns, [&](int r, int panel) {
                                 if constexpr (together) return staging.factor;
                                 if constexpr (!together) return staging.row_factors.of[panel][r];
                               });
      }
      if constexpr (Config::col) {
        const FloatScales s = {s_col, ceil_div(p.n, Config::block_rows), ceil_div(p.m, Config::block_columns),
                               p.ld_s_col};
        store_scales<Config::scale_layout, Lane<Config>::tile_columns, 1, Config::threads, together>(
            s, lane.tile_column / Config::block_rows, lane.tile_row / Config::block_columns, [&](int r, int) {
              if constexpr (together) return staging.factor;
              if constexpr (!together) return staging.col_factors.of[r];
            });
      }
    } else {
      if constexpr (grouped_rows<Config>) {
        // Groups may be empty: the tiles of a row share them all.
        const i64 first = lane.tile_column / Lane<Config>::tile_columns;
        const i64 step = p.n > 0 ? ceil_div(p.n, Lane<Config>::tile_columns) : 1;
        for (i64 group = first; group < p.groups; group += step) {
          for (int r = thread; r < Lane<Config>::tile_rows; r += Config::threads) {
            const i64 at = group * p.m + lane.tile_row + r;
            if (lane.tile_row + r < p.m)
              store_float(s_row + at, scale_of(factor<Config>(p, ptx::ld_relaxed(p.amax_row + at))));
          }
        }
      } else if constexpr (Config::row) {
        for (int r = thread; r < Lane<Config>::tile_rows && lane.tile_column == 0; r += Config::threads) {
          if (lane.tile_row + r < p.m)
            store_float(s_row + lane.tile_row + r, scale_of(staging.row_factors.of[0][r]));
        }
      }
      if constexpr (Config::col) {
        // Groups may be empty: the tiles of a column share them all.
        const i64 first = lane.tile_row / Lane<Config>::tile_rows;
        const i64 step = p.m > 0 ? ceil_div(p.m, Lane<Config>::tile_rows) : 1;
        const i64 count = grouped_columns<Config> ? p.groups : 1;
        for (i64 group = first; group < count; group += step) {
          for (int c = thread; c < Lane<Config>::tile_columns; c += Config::threads) {
            const i64 at = group * p.n + lane.tile_column + c;
            if (lane.tile_column + c < p.n)
              store_float(s_col + at, scale_of(factor<Config>(p, ptx::ld_relaxed(p.amax_col + at))));
          }
        }
      }
    }
  }
};

}  // namespace mxjit
