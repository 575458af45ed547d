// A tile of FP8 bytes, turned in shared memory: lanes put in runs of 4, 8 or 16 rows of one column, and every
// column leaves as one run.
#pragma once

#include "ptx/memory.cuh"

namespace mxjit {

template <int rows, int columns>
struct alignas(16) TurnedTile {
  static constexpr int chunks = rows / 16;  // 16-byte pieces of a column
  static constexpr bool is_short = chunks < 8;
  static_assert(chunks % 8 == 0 || 8 % chunks == 0, "columns meet every bank, or several beside each other");

  u8 bytes[columns * rows];

  // Eight lanes that put the same chunk of columns 8 apart, and eight that take neighbouring chunks of one
  // column, all meet different banks. Short columns lie beside those 8 apart.
  static __device__ __forceinline__ int offset(int column, int chunk) {
    constexpr int beside = is_short ? 8 / chunks : 1;  // columns of 128 bytes
    if (is_short)
      return (column % 8 * (columns / 8) + column / 8) * rows + (chunk ^ column / 8 / beside % chunks) * 16;
    return column * rows + (chunk ^ column / 8 % 8) * 16;
  }
  __device__ __forceinline__ void put(int column, int row, const u32 (&v)[4]) {
    *reinterpret_cast<Vector4*>(bytes + offset(column, row / 16)) = {v[0], v[1], v[2], v[3]};
  }
  __device__ __forceinline__ void put(int column, int row, const u32 (&v)[2]) {
    *reinterpret_cast<Vector2*>(bytes + offset(column, row / 16) + row % 16) = {v[0], v[1]};
  }
  __device__ __forceinline__ void put(int column, int row, const u32 (&v)[1]) {
    *reinterpret_cast<u32*>(bytes + offset(column, row / 16) + row % 16) = v[0];
  }

  /// Writes the tile as rows of `to`, `pitch` bytes apart: `columns_left` rows of `rows_left` bytes, no more
  /// than the tile has. The whole thread block takes part. `wide`: base and pitch of `to` are multiples of 16
  /// bytes.
  template <int threads>
  __device__ __forceinline__ void store(u8* to, i64 pitch, i64 columns_left, i64 rows_left, bool wide) const {
    constexpr int step = threads / chunks, count = columns / step;
    const int chunk = static_cast<int>(threadIdx.x) % chunks;
    const int first = static_cast<int>(threadIdx.x) / chunks;
    to += first * pitch + chunk * 16;
    if (wide && chunk * 16 + 16 <= rows_left) {
#pragma unroll 8
      for (int i = 0; i < count; ++i, to += step * pitch) {
        const int column = first + i * step;
        if (column < columns_left)
          ptx::st_global(to, *reinterpret_cast<const Vector4*>(bytes + offset(column, chunk)));
      }
    } else if (chunk * 16 < rows_left) {
#pragma unroll 1
      for (int i = 0; i < count * 16; ++i) {
        const int column = first + i / 16 * step, b = i % 16;
        if (column < columns_left && chunk * 16 + b < rows_left)
          ptx::st_global(to + i / 16 * step * pitch + b, bytes[offset(column, chunk) + b]);
      }
    }
  }
};

}  // namespace mxjit
