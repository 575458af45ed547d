// Scale codes on their way out: gathered in shared memory in the order of a blocked tile, written in wide
// pieces.
#pragma once

#include "ptx/memory.cuh"
#include "quantize/mx_numbers.cuh"

namespace mxjit {

/// Codes of 128 rows x 4 blocks of a scale matrix as a blocked tile orders them: 32 rows of 16 bytes, each
/// with rows r, r + 32, r + 64 and r + 96.
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

/// A scale matrix in memory and where this thread block's codes go in it.
struct ScaleMatrix {
  u8* data;
  i64 rows, blocks;  // logical extents
  i64 pitch;         // plain: bytes between rows
  i64 row, block;    // of the first code
  bool wide;         // plain: base and pitch are multiples of 4 bytes; blocked: the base is one of 16
};

/// Writes `count` tiles that lie side by side, `tile_rows` rows of each. The whole thread block takes part.
template <ScaleLayout layout, int count, int tile_rows, int threads>
__device__ __forceinline__ void store_codes(const CodeTile* tiles, const ScaleMatrix& s) {
  const int thread = static_cast<int>(threadIdx.x);
  if constexpr (layout == ScaleLayout::blocked) {
    static_assert(tile_rows == 128, "a blocked tile has 128 rows");
    const i64 tiles_across = (s.blocks + 3) / 4;
    u8* to = s.data + (s.row / 128 * tiles_across + s.block / 4) * 512;
    const i64 left = tiles_across - s.block / 4;
    for (int i = thread; i < 32 * count && i / 32 < left; i += threads) {
      const Vector4 v = reinterpret_cast<const Vector4*>(tiles)[i];
      if (s.wide) {
        ptx::st_stream(to + i * 16, v);
      } else {
        for (int b = 0; b < 16; ++b) to[i * 16 + b] = tiles[i / 32].bytes[i % 32 * 16 + b];
      }
    }
  } else {
    for (int i = thread; i < tile_rows * count; i += threads) {
      const int row = i / count, tile = i % count;
      const i64 block = s.block + 4 * tile;
      if (s.row + row >= s.rows || block >= s.blocks) continue;
      const u32 codes = tiles[tile].codes(row);
      u8* to = s.data + (s.row + row) * s.pitch + block;
      if (s.wide && block + 4 <= s.blocks) {
        *reinterpret_cast<u32*>(to) = codes;
      } else {
        for (int b = 0; b < 4 && block + b < s.blocks; ++b) to[b] = static_cast<u8>(codes >> 8 * b);
      }
    }
  }
}

}  // namespace mxjit
