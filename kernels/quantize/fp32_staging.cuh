// What of a tile passes through shared memory where scales are floats, and where those scales go.
#pragma once

#include "quantize/conditional.cuh"
#include "quantize/factors.cuh"
#include "quantize/groups.cuh"
#include "quantize/maxima.cuh"
#include "quantize/panel.cuh"
#include "quantize/turned_tile.cuh"
#include "quantize/values.cuh"

namespace mxjit {

/// Rows of x have scales of their own inside each group, where columns do: of the tile's rows one group may
/// own all, or several some.
template <class Config>
inline constexpr bool grouped_columns =
    Config::span == Span::row&& Config::col&& Config::group_alignment > 0 && !Config::groups_turned;

/// Likewise where groups are of columns of x: inside each, rows have scales of their own.
template <class Config>
inline constexpr bool grouped_rows =
    Config::span == Span::row&& Config::row&& Config::group_alignment > 0 && Config::groups_turned;

/// One factor serves the whole tile.
template <class Config>
inline constexpr bool one_factor = Config::span == Span::tensor || Config::block_rows == 128;

/// A launch may make one pass alone, which hands largest magnitudes on in slots: Passes.
template <class Config>
inline constexpr bool has_slots = Config::span == Span::tensor && !ValueStaging<Config>::normalized;

template <class Config>
struct WarpMaxima {
  u32 of[Config::threads / 32];
};

/// A factor a row and panel. With one_factor it is the first, whichever the axis.
template <class Config>
struct alignas(16) RowFactors {
  float of[Config::warps_n][Lane<Config>::tile_rows];
};
template <class Config>
struct alignas(16) ColumnFactors {
  float of[Lane<Config>::tile_columns];
};

template <class Config>
struct Fp32Staging {
  static constexpr bool exchanges = Config::span == Span::block && (Config::col || Config::block_rows == 128);

  union {  // a tile's values on their way in, its columns on their way out
    ValueStaging<Config> values;
    typename If<Config::col, TurnedTile<Lane<Config>::tile_rows, Lane<Config>::tile_columns>>::type turned;
  };
  typename If<Config::row && !one_factor<Config>, RowFactors<Config>>::type row_factors;
  typename If<Config::col && !one_factor<Config>, ColumnFactors<Config>>::type col_factors;
  float factor;  // with one_factor
  typename If<has_slots<Config>, WarpMaxima<Config>>::type slots;
  typename If<exchanges, MaximaExchange<Config>>::type exchange;
  typename If<(Config::group_alignment > 0), GroupTable<Config::max_groups>>::type groups;
};

/// A float scale matrix in memory.
struct FloatScales {
  float* data;
  i64 rows, blocks;  // extents, counted in blocks
  i64 pitch;         // plain: between rows; mn_major: between blocks, with zeros from `rows` on
};

__device__ __forceinline__ void store_float(float* to, float value) {
  ptx::st_global(to, __float_as_uint(value));
}

/// The scales of `rows` rows of `panels` blocks from (row, block) on; factor(row, panel) counts from there.
/// `together`: one factor serves all rows.
template <ScaleLayout layout, int rows, int panels, int threads, bool together, class Factor>
__device__ __forceinline__ void store_scales(const FloatScales& s, i64 row, i64 block, Factor factor) {
  constexpr bool mn_major = layout == ScaleLayout::mn_major;
  // The last rows of mn_major scales write the zeros after them.
  constexpr int count = !together ? rows : mn_major ? 4 : 1;
#pragma unroll 1
  for (int i = static_cast<int>(threadIdx.x); i < count * panels; i += threads) {
    const int r = mn_major ? i % count : i / panels, panel = mn_major ? i / count : i % panels;
    if (block + panel >= s.blocks) continue;
    const i64 at = mn_major ? (block + panel) * s.pitch + row + r : (row + r) * s.pitch + block + panel;
    if (row + r < s.rows) {
      if (!together || r == 0) store_float(s.data + at, scale_of(factor(r, panel)));
    } else if (mn_major && row + r < s.pitch) {
      store_float(s.data + at, 0.0f);
    }
  }
}

}  // namespace mxjit
