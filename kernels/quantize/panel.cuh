// A warp's panel. Lane l holds 8 columns of rows_per_lane consecutive rows; lanes_across lanes lie beside
// each other, the next ones below them. With 16 across a panel has 2 * rows_per_lane rows by 128 columns.
#pragma once

#include "ptx/memory.cuh"
#include "ptx/registers.cuh"
#include "quantize/pairs.cuh"
#include "quantize/params.cuh"

namespace mxjit {

inline constexpr int lane_columns = 8;

/// Where this lane's elements lie. A tile is warps_m x warps_n panels.
template <class Config>
struct Lane {
  static constexpr int across = Config::lanes_across, below = 32 / across;
  static constexpr int panel_rows = below * Config::rows_per_lane, panel_columns = across * lane_columns;
  static constexpr int tile_rows = Config::warps_m * panel_rows;
  static constexpr int tile_columns = Config::warps_n * panel_columns;

  u32 tile_m, tile_n;               // the tile's place among tiles
  int index;                        // in the warp
  int warp_m, warp_n;               // the warp's panel in the tile
  i64 tile_row, tile_column;        // the tile's first element
  int row_in_tile, column_in_tile;  // the lane's first element
  i64 row, column;
  int rows, columns;  // how many of its rows and columns lie inside the matrix, at most those it holds

  __device__ __forceinline__ Lane(const QuantizeParams& p, u32 tile_m_, u32 tile_n_)
      : tile_m(tile_m_), tile_n(tile_n_) {
    index = static_cast<int>(threadIdx.x % 32);
    const int warp = static_cast<int>(threadIdx.x / 32);
    warp_m = warp / Config::warps_n;
    warp_n = warp % Config::warps_n;
    tile_row = i64{tile_m} * tile_rows;
    tile_column = i64{tile_n} * tile_columns;
    row_in_tile = warp_m * panel_rows + index / across * Config::rows_per_lane;
    column_in_tile = warp_n * panel_columns + index % across * lane_columns;
    row = tile_row + row_in_tile;
    column = tile_column + column_in_tile;
    rows = clamp(p.m - row, Config::rows_per_lane);
    columns = clamp(p.n - column, lane_columns);
  }

  /// The same, found out anew: nothing of it stays in registers while there is something else to compute.
  __device__ __forceinline__ Lane again(const QuantizeParams& p) const {
    return Lane(p, ptx::computed_here(tile_m), ptx::computed_here(tile_n));
  }

  static __device__ __forceinline__ int clamp(i64 value, int most) {
    return static_cast<int>(value < 0 ? 0 : value > most ? most : value);
  }
};

/// The pairs of so many bytes, in 16-byte units.
__device__ __forceinline__ void unpack_units(const Vector4* from, u32 (&to)[4]) {
  to[0] = from->x, to[1] = from->y, to[2] = from->z, to[3] = from->w;
}

template <int pairs>
__device__ __forceinline__ void unpack_units(const Vector4* from, Vector2 (&to)[pairs]) {
#pragma unroll
  for (int i = 0; i < pairs; i += 2, ++from) to[i] = {from->x, from->y}, to[i + 1] = {from->z, from->w};
}

/// As many elements of a row as `to` holds, at an address that is a multiple of 16 bytes.
template <class Pair, int pairs>
__device__ __forceinline__ void load_lane_row(const u8* from, Pair (&to)[pairs]) {
  constexpr int units = pairs * static_cast<int>(sizeof(Pair)) / 16;
  Vector4 loaded[units];
#pragma unroll
  for (int u = 0; u < units; ++u) loaded[u] = ptx::ld_nc_v4(from + u * 16);
  unpack_units(loaded, to);
}

/// One element, as it is stored.
template <class S>
__device__ __forceinline__ float load_element(const u8* from) {
  if constexpr (S::bytes == 2) return S::widen(typename S::Pair{ptx::ld_nc_u16(from)}).low;
  if constexpr (S::bytes == 4) return __uint_as_float(ptx::ld_nc_u32(from));
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

/// Where the FP8 bytes of the lane's rows go, those of a row eight at once where that is possible. Rows at
/// odd addresses and the last columns of a matrix are rare: their way is short, not fast.
template <class Config>
struct RowBytes {
  u8* const to;
  const i64 pitch;
  const int rows, columns;
  const int wide_rows;  // how many are written at once: all or none
  u8* next = to;

  __device__ __forceinline__ RowBytes(const QuantizeParams& p, const Lane<Config>& lane)
      : to(p.q_row + lane.row * p.ld_q_row + lane.column),
        pitch(p.ld_q_row),
        rows(lane.rows),
        columns(lane.columns),
        wide_rows((p.wide & wide_q_row) != 0 && columns == lane_columns ? rows : 0) {}

  /// Of one row after the other.
  __device__ __forceinline__ void store_wide(int r, Vector2 bytes) {
    if (r < wide_rows) ptx::st_global(next, bytes);
    next += pitch;
  }

  /// All rows, if they were not written at once: bytes(r, elements of row r). One row after the other passes
  /// through the first row's registers, and all are back in place at the end.
  template <class Pair, class Bytes>
  __device__ __forceinline__ void store_narrow(Pair (&x)[Config::rows_per_lane][4],
                                               const Bytes& bytes) const {
    u8* at = to;
#pragma unroll 1
    for (int r = 0; r < Config::rows_per_lane && wide_rows != rows; ++r, at += pitch) {
      const Vector2 eight = bytes(r, x[0]);
      u64 left = u64{eight.y} << 32 | eight.x;
#pragma unroll 1
      for (int i = 0; i < columns && r < rows; ++i, left >>= 8) ptx::st_global(at + i, static_cast<u8>(left));
#pragma unroll
      for (int w = 0; w < 4; ++w) {
        const Pair first = x[0][w];
#pragma unroll
        for (int above = 0; above + 1 < Config::rows_per_lane; ++above) x[above][w] = x[above + 1][w];
        x[Config::rows_per_lane - 1][w] = first;
      }
    }
    // What was made of x before is not made again after the loop, nor kept over it.
#pragma unroll
    for (auto& row : x)
#pragma unroll
      for (Pair& pair : row) pair = ptx::computed_here(pair);
  }
};

}  // namespace mxjit
