// Where the codes of each group go in blocked scales: "row" codes of a group start on a new tile of rows,
// "col" codes are a blocked matrix of the group's own width, one after the other.
#pragma once

#include "ptx/memory.cuh"
#include "quantize/groups.cuh"
#include "quantize/mx_codes.cuh"

namespace mxjit {

/// A thread block's tile among all.
struct TileNumber {
  i64 tile, tiles;
};

/// Zeroes bytes [begin, end) of `to`, each thread block a part of them.
template <int threads>
__device__ __forceinline__ void zero_share(const TileNumber& number, u8* to, i64 begin, i64 end) {
  const i64 stride = number.tiles * threads;
  for (i64 i = begin + 4 * (number.tile * threads + threadIdx.x); i < end; i += 4 * stride) {
    if (i + 4 <= end && reinterpret_cast<u64>(to + i) % 4 == 0) {
      ptx::st_global(to + i, u32{0});
    } else {
      for (i64 b = i; b < i + 4 && b < end; ++b) ptx::st_global(to + b, u8{0});
    }
  }
}

/// Four codes, or as many as `count`, of one word of a tile.
__device__ __forceinline__ void store_word(u8* to, u32 codes, int first, int count) {
  if (count == 4 && reinterpret_cast<u64>(to) % 4 == 0) {
    ptx::st_global(to, codes);
  } else {
    for (int b = first; b < first + count; ++b)
      ptx::st_global(to + b, static_cast<u8>(codes >> 8 * (b - first)));
  }
}

template <int threads>
__device__ __forceinline__ void store_tile(u8* to, const CodeTile& tile) {
  for (int i = static_cast<int>(threadIdx.x); i < 32; i += threads) {
    if (reinterpret_cast<u64>(to) % 16 == 0) {
      ptx::st_global(to + i * 16, reinterpret_cast<const Vector4*>(tile.bytes)[i]);
    } else {
      for (int b = 0; b < 16; ++b) ptx::st_global(to + i * 16 + b, tile.bytes[i * 16 + b]);
    }
  }
}

/// "row" codes of a tile whose groups need not start on tiles of rows. `s` is the dense matrix.
template <int blocks_across, int threads, int most>
__device__ __forceinline__ void store_grouped_row_codes(const GroupTable<most>& table, const CodeTile& tile,
                                                        const ScaleMatrix& s, int groups,
                                                        const TileNumber& number) {
  const i64 tiles_across = (s.blocks + 3) / 4;
  const int first = static_cast<int>(s.block % 4);
  const int count = blocks_across == 4 || s.block + 1 == s.blocks ? 4 - first : 1;  // the last one pads
  for (int r = static_cast<int>(threadIdx.x); r < 128; r += threads) {
    const i64 row = s.row + r;
    const int group = table.find(row);
    if (group == table.count) continue;
    i64 place = table.padded_rows[group] + (row - table.start(group));
    u32 codes = blocks_across == 4 ? tile.codes(r) : tile.codes(r) & 0xFF;
    // The last row of a group writes the rows that pad its last tile.
    do {
      u8* to = s.data + (place / 128 * tiles_across + s.block / 4) * 512;
      store_word(to + 4 * CodeTile::word(static_cast<int>(place % 128)), codes, first, count);
      codes = 0;
      ++place;
    } while (row + 1 == table.ends[group] && place % 128 != 0);
  }
  zero_share<threads>(number, s.data, table.all_rows * tiles_across * 4,
                      (s.rows + 128 * i64{groups}) * tiles_across * 4);
}

/// "col" codes of a tile: columns of codes that lie in groups of different widths. `s` is the dense matrix,
/// its row a column of x.
template <int block_rows, int threads, int most>
__device__ __forceinline__ void store_grouped_col_codes(const GroupTable<most>& table, const CodeTile& tile,
                                                        const ScaleMatrix& s, int groups,
                                                        const TileNumber& number) {
  constexpr int blocks_across = 128 / block_rows;
  const i64 rows = (s.rows + 127) / 128 * 128;
#pragma unroll 1
  for (int b = 0; b < blocks_across; ++b) {
    const i64 row = (s.block + b) * block_rows;  // of x
    const int group = table.find(row);
    if (group == table.count) continue;
    const i64 start = table.start(group), size = table.ends[group] - start;
    const i64 column = (row - start) / block_rows, width = (size + block_rows - 1) / block_rows;
    const int first = static_cast<int>(column % 4);
    const bool together = first == 0 && b == 0 && blocks_across == 4 && column + 4 <= width;
    const int count = together ? 4 : column + 1 == width ? 4 - first : 1;  // the last one pads
    u8* to =
        s.data + rows * table.padded_blocks[group] + (s.row / 128 * ((width + 3) / 4) + column / 4) * 512;
    if (together) {
      store_tile<threads>(to, tile);
      break;
    }
    for (int r = static_cast<int>(threadIdx.x); r < 128; r += threads) {
      store_word(to + 4 * CodeTile::word(r), tile.codes(r) >> 8 * b & 0xFF, first, count);
    }
  }
  zero_share<threads>(number, s.data, rows * table.all_blocks, rows * (s.blocks + 4 * i64{groups}));
}

}  // namespace mxjit
