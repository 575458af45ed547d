// The order in which persistent blocks take tiles: `raster` tile rows at a time, so that a wave shares A and
// B in L2.
#pragma once

#include "ptx/types.cuh"

namespace mxjit {

/// A divisor whose reciprocal is found out once: a division is a chain of some 100 cycles.
class Divisor {
 public:
  explicit __device__ __forceinline__ Divisor(u32 divisor)
      : divisor_(divisor), reciprocal_(0xFFFFFFFF / divisor) {}

  __device__ __forceinline__ u32 quotient(u32 value) const {
    const u32 below = static_cast<u32>(u64{value} * reciprocal_ >> 32);  // by one at most
    return below + (value - below * divisor_ >= divisor_ ? 1 : 0);
  }

 private:
  u32 divisor_, reciprocal_;
};

template <class Config>
class TileWalk {
 public:
  __device__ __forceinline__ TileWalk(i32 m, i32 n)
      : rows_((static_cast<u32>(m) + Config::block_m - 1) / Config::block_m),
        columns_((static_cast<u32>(n) + Config::block_n - 1) / Config::block_n),
        index_(blockIdx.x),
        band_tiles_(Config::raster * columns_),
        last_rows_(rows_ % Config::raster != 0 ? rows_ % Config::raster : Config::raster) {}
  __device__ __forceinline__ bool valid() const { return index_ < rows_ * columns_; }
  __device__ __forceinline__ void next() { index_ += gridDim.x; }
  __device__ __forceinline__ i32 tile_m() const {
    const u32 rows = band_rows();
    return static_cast<i32>(band() * Config::raster + in_band() - tile_column() * rows);
  }
  __device__ __forceinline__ i32 tile_n() const { return static_cast<i32>(tile_column()); }

 private:
  // A band is `raster` rows by all columns, walked row by row inside a column.
  __device__ __forceinline__ u32 band() const { return band_tiles_.quotient(index_); }
  __device__ __forceinline__ u32 in_band() const { return index_ - band() * Config::raster * columns_; }
  __device__ __forceinline__ u32 band_rows() const {
    const u32 left = rows_ - band() * Config::raster;
    return left < Config::raster ? left : Config::raster;
  }
  __device__ __forceinline__ u32 tile_column() const {
    return rows_ - band() * Config::raster < Config::raster ? last_rows_.quotient(in_band())
                                                            : in_band() / Config::raster;
  }

  u32 rows_, columns_, index_;
  Divisor band_tiles_, last_rows_;
};

}  // namespace mxjit
