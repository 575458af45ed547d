// A 128 x 128 tile of FP8 bytes, turned in shared memory: lanes put in runs of 16 rows of one column, and
// columns leave as runs of 128 bytes.
#pragma once

#include "ptx/memory.cuh"

namespace mxjit {

struct alignas(16) TurnedTile {
  static constexpr int extent = 128;
  static constexpr int chunks = extent / 16;  // 16-byte pieces of a column

  u8 bytes[extent * extent];

  // Eight lanes that put the same chunk of columns 8 apart, and eight that take the chunks of one column, all
  // meet different banks.
  static __device__ __forceinline__ int offset(int column, int chunk) {
    return column * extent + (chunk ^ column / 8 % chunks) * 16;
  }
  __device__ __forceinline__ void put(int column, int chunk, Vector4 v) {
    *reinterpret_cast<Vector4*>(bytes + offset(column, chunk)) = v;
  }

  /// Writes the tile as rows of `to`, `pitch` bytes apart: `columns` rows of `rows` bytes. The whole thread
  /// block takes part. `wide`: base and pitch of `to` are multiples of 16 bytes. `whole`: wide, and no row or
  /// column is missing.
  template <int threads, bool whole>
  __device__ __forceinline__ void store(u8* to, i64 pitch, i64 columns, i64 rows, bool wide) const {
    const int chunk = static_cast<int>(threadIdx.x) % chunks;
    int column = static_cast<int>(threadIdx.x) / chunks;
    to += column * pitch + chunk * 16;
#pragma unroll
    for (int i = 0; i < extent * chunks / threads; ++i) {
      if (!whole && column >= columns) return;
      const u8* from = bytes + offset(column, chunk);
      if (whole || (wide && chunk * 16 + 16 <= rows)) {
        ptx::st_stream(to, *reinterpret_cast<const Vector4*>(from));
      } else {
        for (int b = 0; b < 16 && chunk * 16 + b < rows; ++b) ptx::st_stream(to + b, from[b]);
      }
      to += threads / chunks * pitch;
      column += threads / chunks;
    }
  }
};

}  // namespace mxjit
