// Scale codes on their way out: gathered in shared memory in the order of a blocked tile, written in wide
// pieces.
#pragma once

#include "ptx/memory.cuh"
#include "quantize/mx_numbers.cuh"

namespace mxjit {

/// Codes of 128 rows x 4 blocks of a scale matrix as a blocked tile orders them: 32 rows of 16 bytes, each
/// with rows r, r + 32, r + 64 and r + 96. Every row has its codes, also those that share a block.
struct alignas(16) CodeTile {
  u8 bytes[512];

  static __device__ __forceinline__ int word(int row) { return row % 32 * 4 + row / 32; }
  __device__ __forceinline__ void set(int row, int block, u32 code) {
    bytes[word(row) * 4 + block] = static_cast<u8>(code);
  }
  __device__ __forceinline__ u32 codes(int row) const {
    return reinterpret_cast<const u32*>(bytes)[word(row)];
  }
};

/// A scale matrix in memory, and where a thread block's codes go in it.
struct ScaleMatrix {
  u8* data;
  i64 rows, blocks;  // extents; rows are those of the data, also where a block is taller
  i64 pitch;         // plain: bytes between rows of blocks
  i64 row, block;    // of the thread block's first code
  bool wide;         // plain: base and pitch are multiples of 4 bytes; blocked: the base is one of 16
};

/// The first `count` codes of a run of 1, 2 or 4; all at once where it is whole and `wide`.
template <int run>
__device__ __forceinline__ void store_run(u8* to, u32 codes, bool wide, i64 count) {
  if (wide && run <= count) {
    if constexpr (run == 1) ptx::st_global(to, static_cast<u8>(codes));
    if constexpr (run == 2) ptx::st_global(to, static_cast<u16>(codes));
    if constexpr (run == 4) ptx::st_global(to, codes);
  } else {
    for (int b = 0; b < run && b < count; ++b) ptx::st_global(to + b, static_cast<u8>(codes >> 8 * b));
  }
}

/// Blocked: `count` tiles side by side. A tile has four blocks, or one where a block is as long as the tile.
template <int blocks_across, int count, int threads>
__device__ __forceinline__ void store_blocked_codes(const CodeTile* tiles, const ScaleMatrix& s) {
  const i64 tiles_across = (s.blocks + 3) / 4;
  u8* to = s.data + (s.row / 128 * tiles_across + s.block / 4) * 512;
  const int thread = static_cast<int>(threadIdx.x);
  if constexpr (blocks_across == 1) {
    static_assert(count == 1, "one after the other");
    const int column = static_cast<int>(s.block % 4);
    const int end = s.block + 1 == s.blocks ? 4 : column + 1;  // the last block writes the padding after it
#pragma unroll 1
    for (int row = thread; row < 128; row += threads) {
      const u32 codes = tiles->codes(row) & 0xFF;
      for (int b = column; b < end; ++b) {
        ptx::st_global(to + CodeTile::word(row) * 4 + b, static_cast<u8>(b == column ? codes : 0));
      }
    }
  } else {
    const i64 left = tiles_across - s.block / 4;
#pragma unroll 1
    for (int i = thread; i < 32 * count && i / 32 < left; i += threads) {
      if (s.wide) {
        ptx::st_global(to + i * 16, reinterpret_cast<const Vector4*>(tiles)[i]);
      } else {
        for (int b = 0; b < 16; ++b) ptx::st_global(to + i * 16 + b, tiles[i / 32].bytes[i % 32 * 16 + b]);
      }
    }
  }
}

/// Blocked: `rows` x `blocks` of a tile that other thread blocks have the rest of, its padding, too.
template <int rows, int blocks, int threads>
__device__ __forceinline__ void store_blocked_part(const CodeTile& tile, const ScaleMatrix& s) {
  const i64 tiles_across = (s.blocks + 3) / 4;
  if (s.row >= (s.rows + 127) / 128 * 128 || s.block >= 4 * tiles_across) return;
  u8* const to = s.data + (s.row / 128 * tiles_across + s.block / 4) * 512 +
                 CodeTile::word(static_cast<int>(s.row % 128)) * 4 + s.block % 4;
#pragma unroll 1
  for (int row = static_cast<int>(threadIdx.x); row < rows; row += threads)
    store_run<blocks>(to + CodeTile::word(row) * 4, tile.codes(row), s.wide, blocks);
}

/// Plain: one code a block, `count` tiles side by side, `tile_rows` rows of each.
template <int block_rows, int blocks_across, int count, int tile_rows, int threads>
__device__ __forceinline__ void store_plain_codes(const CodeTile* tiles, const ScaleMatrix& s) {
  constexpr int rows = (tile_rows + block_rows - 1) / block_rows;
#pragma unroll 1
  for (int i = static_cast<int>(threadIdx.x); i < rows * count; i += threads) {
    const int row = i / count * block_rows, tile = i % count;
    const i64 block = s.block + blocks_across * tile;
    if (s.row + row >= s.rows || block >= s.blocks) continue;
    const u32 codes = tiles[tile].codes(row);
    u8* to = s.data + (s.row + row) / block_rows * s.pitch + block;
    store_run<blocks_across>(to, codes, s.wide || blocks_across == 1, s.blocks - block);
  }
}

}  // namespace mxjit
