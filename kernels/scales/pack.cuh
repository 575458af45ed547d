// Scale codes from the plain matrix to tiles of 128 x 4 codes, and back.
//
// A tile is 32 chunks of 16 bytes; chunk r holds four codes each of rows r, r + 32, r + 64 and r + 96. A
// thread moves a chunk, eight neighbouring threads those of neighbouring tiles, so that both sides are
// touched in runs of 32 bytes and more. Where a tile's codes lie in the plain matrix is all that placements
// differ in.
#pragma once

#include "groups/group_ends.cuh"
#include "ptx/memory.cuh"
#include "scales/params.cuh"

namespace mxjit {

/// Each matrix by itself; groups of rows, each from a tile of its own; groups of columns, each a matrix of
/// its own width.
enum class TilePlacement { matrices, m_groups, k_groups };

struct ScalesPack {
  using Params = PackScalesParams;

  template <class Config>
  static __device__ __forceinline__ void run(const Params& p) {
    __shared__ GroupEnds groups;
    if constexpr (Config::placement == TilePlacement::m_groups) groups.read(p.groups, 128);
    if constexpr (Config::placement == TilePlacement::k_groups) groups.read(p.groups, 4);
    const int chunk = static_cast<int>(threadIdx.x / 8);
    for (i64 tile = i64{blockIdx.x} * 8 + threadIdx.x % 8; tile < p.tiles; tile += i64{gridDim.x} * 8) {
      const Source source = source_of<Config>(p, groups, tile);
      if constexpr (Config::unpack) {
        if (source.rows > 0) unpack_chunk(p, source, p.from + tile * 512, chunk);
      } else {
        pack_chunk(p, source, tile * 512 + chunk * 16, chunk);
      }
    }
    if constexpr (Config::unpack && Config::placement != TilePlacement::matrices) {
      const bool rows = Config::placement == TilePlacement::m_groups;
      zero_rest(p, rows ? groups.owned() : 0, rows ? 0 : groups.owned());
    }
  }

 private:
  /// The part of the plain matrix that a tile holds, at most 128 x 4 codes; no rows: none of it.
  struct Source {
    i64 row, column;
    int rows, columns;
  };

  static __device__ __forceinline__ int at_most(i64 value, int most) {
    return static_cast<int>(value < most ? value : most);
  }

  template <class Config>
  static __device__ __forceinline__ Source source_of(const Params& p, const GroupEnds& groups, i64 tile) {
    const i64 down = (p.rows + 127) / 128;
    i64 across = (p.columns + 3) / 4;
    i64 row = 0, row_end = p.rows, column = 0, column_end = p.columns;
    if constexpr (Config::placement == TilePlacement::matrices) {
      row = tile / (down * across) * p.rows;
      row_end = row + p.rows;
      tile %= down * across;
    } else {
      // Groups take whole rows of tiles, or whole columns of them.
      constexpr bool of_rows = Config::placement == TilePlacement::m_groups;
      const i64 place = of_rows ? tile / across * 128 : tile / down * 4;
      const int group = groups.find_place(place);
      if (group == groups.count) return {0, 0, 0, 0};
      if (of_rows) {
        tile -= groups.places[group] / 128 * across;
        row = groups.start(group);
        row_end = groups.ends[group];
      } else {
        tile -= groups.places[group] / 4 * down;
        across = (groups.size(group) + 3) / 4;
        column = groups.start(group);
        column_end = groups.ends[group];
      }
    }
    row += tile / across * 128;
    column += tile % across * 4;
    return {row, column, at_most(row_end - row, 128), at_most(column_end - column, 4)};
  }

  static __device__ __forceinline__ void pack_chunk(const Params& p, const Source& source, i64 at,
                                                    int chunk) {
    u32 words[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int row = chunk + 32 * i;
      const u8* from = p.from + (source.row + row) * p.pitch + source.column;
      words[i] = 0;
      if (row >= source.rows) continue;
      if (source.columns == 4 && reinterpret_cast<u64>(from) % 4 == 0) {
        words[i] = ptx::ld_nc_u32(from);
      } else {
#pragma unroll 1
        for (int c = 0; c < source.columns; ++c) words[i] |= u32{ptx::ld_nc_u8(from + c)} << 8 * c;
      }
    }
    u8* const to = p.to + at;
    if (at + 16 <= p.blocked_bytes && reinterpret_cast<u64>(to) % 16 == 0) {
      ptx::st_global(to, Vector4{words[0], words[1], words[2], words[3]});
      return;
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll 1
      for (int b = 0; b < 4 && at + 4 * i + b < p.blocked_bytes; ++b)
        ptx::st_global(to + 4 * i + b, static_cast<u8>(words[i] >> 8 * b));
    }
  }

  static __device__ __forceinline__ void unpack_chunk(const Params& p, const Source& source, const u8* tile,
                                                      int chunk) {
    const u8* const from = tile + chunk * 16;
    u32 words[4] = {};
    if (reinterpret_cast<u64>(from) % 16 == 0) {
      const Vector4 v = ptx::ld_nc_v4(from);
      words[0] = v.x, words[1] = v.y, words[2] = v.z, words[3] = v.w;
    } else {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
#pragma unroll 1
        for (int b = 0; b < 4; ++b) words[i] |= u32{ptx::ld_nc_u8(from + 4 * i + b)} << 8 * b;
      }
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int row = chunk + 32 * i;
      u8* to = p.to + (source.row + row) * p.pitch + source.column;
      if (row >= source.rows) continue;
      if (source.columns == 4 && reinterpret_cast<u64>(to) % 4 == 0) {
        ptx::st_global(to, words[i]);
      } else {
#pragma unroll 1
        for (int c = 0; c < source.columns; ++c) ptx::st_global(to + c, static_cast<u8>(words[i] >> 8 * c));
      }
    }
  }

  /// Codes that no group owns, from (row, column) on.
  static __device__ __forceinline__ void zero_rest(const Params& p, i64 row, i64 column) {
    for (i64 r = row + blockIdx.x; r < p.rows; r += gridDim.x) {
#pragma unroll 1
      for (i64 c = column + threadIdx.x; c < p.columns; c += blockDim.x)
        ptx::st_global(p.to + r * p.pitch + c, u8{0});
    }
  }
};

}  // namespace mxjit
