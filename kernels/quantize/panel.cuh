// A warp's panel: 2 * rows_per_lane rows by 128 columns. Lane l holds 8 columns of rows_per_lane consecutive
// rows, the lower 16 lanes the upper half of the rows.
#pragma once

#include "ptx/memory.cuh"
#include "quantize/pairs.cuh"
#include "quantize/params.cuh"

namespace mxjit {

inline constexpr int panel_columns = 128;
inline constexpr int lane_columns = 8;

/// Where this lane's elements lie. A tile is warps_m x warps_n panels.
template <class Config>
struct Lane {
  static constexpr int panel_rows = 2 * Config::rows_per_lane;
  static constexpr int tile_rows = Config::warps_m * panel_rows;
  static constexpr int tile_columns = Config::warps_n * panel_columns;

  int index;                        // in the warp
  int warp_m, warp_n;               // the warp's panel in the tile
  i64 tile_row, tile_column;        // the tile's first element
  int row_in_tile, column_in_tile;  // the lane's first element
  i64 row, column;
  int rows, columns;  // how many of its rows and columns lie inside the matrix, at most those it holds

  __device__ __forceinline__ Lane(const QuantizeParams& p, u32 tile_m, u32 tile_n) {
    index = static_cast<int>(threadIdx.x % 32);
    const int warp = static_cast<int>(threadIdx.x / 32);
    warp_m = warp / Config::warps_n;
    warp_n = warp % Config::warps_n;
    tile_row = i64{tile_m} * tile_rows;
    tile_column = i64{tile_n} * tile_columns;
    row_in_tile = warp_m * panel_rows + index / 16 * Config::rows_per_lane;
    column_in_tile = warp_n * panel_columns + index % 16 * lane_columns;
    row = tile_row + row_in_tile;
    column = tile_column + column_in_tile;
    rows = clamp(p.m - row, Config::rows_per_lane);
    columns = clamp(p.n - column, lane_columns);
  }

  static __device__ __forceinline__ int clamp(i64 value, int most) {
    return static_cast<int>(value < 0 ? 0 : value > most ? most : value);
  }
};

/// 16 bytes of a row.
__device__ __forceinline__ void load_unit(const u8* from, u32 (&to)[4]) {
  const Vector4 v = ptx::ld_nc_v4(from);
  to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w;
}

__device__ __forceinline__ void load_unit(const u8* from, Vector2 (&to)[2]) {
  const Vector4 v = ptx::ld_nc_v4(from);
  to[0] = {v.x, v.y}, to[1] = {v.z, v.w};
}

__device__ __forceinline__ void load_lane_row(const u8* from, u32 (&to)[4]) { load_unit(from, to); }

__device__ __forceinline__ void load_lane_row(const u8* from, Vector2 (&to)[4]) {
  const Vector4 a = ptx::ld_nc_v4(from);
  const Vector4 b = ptx::ld_nc_v4(from + 16);
  to[0] = {a.x, a.y}, to[1] = {a.z, a.w}, to[2] = {b.x, b.y}, to[3] = {b.z, b.w};
}

/// The first `count` elements of a row at any address, the others zero.
__device__ __forceinline__ void load_lane_row(const u8* from, int count, u32 (&to)[4]) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const u32 low = 2 * i < count ? ptx::ld_nc_u16(from + 4 * i) : u16{0};
    const u32 high = 2 * i + 1 < count ? ptx::ld_nc_u16(from + 4 * i + 2) : u16{0};
    to[i] = low | high << 16;
  }
}

template <int pairs>
__device__ __forceinline__ void load_lane_row(const u8* from, int count, Vector2 (&to)[pairs]) {
#pragma unroll
  for (int i = 0; i < pairs; ++i) {
    to[i].x = 2 * i < count ? ptx::ld_nc_u32(from + 8 * i) : 0;
    to[i].y = 2 * i + 1 < count ? ptx::ld_nc_u32(from + 8 * i + 4) : 0;
  }
}

/// The lane's elements as they are stored; those outside the matrix are zero.
template <class Config, class Pair>
__device__ __forceinline__ void load_panel(const QuantizeParams& p, const Lane<Config>& lane,
                                           Pair (&x)[Config::rows_per_lane][4]) {
  constexpr int element = Pairs<Config::stored>::bytes, rows = Config::rows_per_lane;
  const u8* from = static_cast<const u8*>(p.x) + (lane.row * p.ld_x + lane.column) * element;
  const i64 pitch = p.ld_x * element;
  const bool wide = (p.wide & wide_x) != 0 && lane.columns == lane_columns;
#pragma unroll
  for (int r = 0; r < rows; ++r) {
    if (wide && r < lane.rows) {
      load_lane_row(from + r * pitch, x[r]);
    } else {
#pragma unroll
      for (int w = 0; w < 4; ++w) x[r][w] = Pair{};
    }
  }
  if (wide || lane.columns == 0) return;
    // One row after the other, handed up through the registers: this path is rare, and must be short.
#pragma unroll 1
  for (int r = 0; r < rows; ++r, from += pitch) {
#pragma unroll
    for (int above = 0; above + 1 < rows; ++above)
#pragma unroll
      for (int w = 0; w < 4; ++w) x[above][w] = x[above + 1][w];
    load_lane_row(from, r < lane.rows ? lane.columns : 0, x[rows - 1]);
  }
}

/// Eight FP8 bytes of the lane's row `r`.
template <class Config>
__device__ __forceinline__ void store_lane_row(const QuantizeParams& p, const Lane<Config>& lane, int r,
                                               Vector2 bytes) {
  if (r >= lane.rows) return;
  u8* to = p.q_row + (lane.row + r) * p.ld_q_row + lane.column;
  if ((p.wide & wide_q_row) != 0 && lane.columns == lane_columns) {
    ptx::st_global(to, bytes);
  } else {
    u64 left = u64{bytes.y} << 32 | bytes.x;
#pragma unroll 1
    for (int i = 0; i < lane.columns; ++i, left >>= 8) ptx::st_global(to + i, static_cast<u8>(left));
  }
}

}  // namespace mxjit
