// A tile of FP8 bytes, turned in shared memory: lanes put in runs of 16 rows of one column, and every column
// leaves as one run.
#pragma once

#include "ptx/memory.cuh"

namespace mxjit {

template <int rows, int columns>
struct alignas(16) TurnedTile {
  static constexpr int chunks = rows / 16;  // 16-byte pieces of a column
  static_assert(chunks % 8 == 0, "columns of 128 bytes meet every bank");

  u8 bytes[columns * rows];

  // Eight lanes that put the same chunk of columns 8 apart, and eight that take neighbouring chunks of one
  // column, all meet different banks.
  static __device__ __forceinline__ int offset(int column, int chunk) {
    return column * rows + (chunk ^ column / 8 % 8) * 16;
  }
  __device__ __forceinline__ void put(int column, int chunk, Vector4 v) {
    *reinterpret_cast<Vector4*>(bytes + offset(column, chunk)) = v;
  }

  /// Writes the tile as rows of `to`, `pitch` bytes apart: `columns_left` rows of `rows_left` bytes, no more
  /// than the tile has. The whole thread block takes part. `wide`: base and pitch of `to` are multiples of 16
  /// bytes. `whole`: wide, and no row or column is missing.
  template <int threads, bool whole>
  __device__ __forceinline__ void store(u8* to, i64 pitch, i64 columns_left, i64 rows_left, bool wide) const {
    const int chunk = static_cast<int>(threadIdx.x) % chunks;
    int column = static_cast<int>(threadIdx.x) / chunks;
    to += column * pitch + chunk * 16;
#pragma unroll 8
    for (int i = 0; i < columns * chunks / threads; ++i) {
      if (!whole && column >= columns_left) return;
      const u8* from = bytes + offset(column, chunk);
      if (whole || (wide && chunk * 16 + 16 <= rows_left)) {
        ptx::st_stream(to, *reinterpret_cast<const Vector4*>(from));
      } else {
        for (int b = 0; b < 16 && chunk * 16 + b < rows_left; ++b) ptx::st_stream(to + b, from[b]);
      }
      to += threads / chunks * pitch;
      column += threads / chunks;
    }
  }
};

}  // namespace mxjit
