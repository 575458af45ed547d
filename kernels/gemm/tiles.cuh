// The order in which persistent blocks take tiles: `raster` tile rows at a time, so that a wave shares A and
// B in L2.
#pragma once

#include "ptx/types.cuh"

namespace mxjit {

template <class Config>
class TileWalk {
 public:
  __device__ __forceinline__ TileWalk(i32 m, i32 n)
      : rows_((static_cast<u32>(m) + Config::block_m - 1) / Config::block_m),
        columns_((static_cast<u32>(n) + Config::block_n - 1) / Config::block_n),
        index_(blockIdx.x) {}
  __device__ __forceinline__ bool valid() const { return index_ < rows_ * columns_; }
  __device__ __forceinline__ void next() { index_ += gridDim.x; }
  __device__ __forceinline__ i32 tile_m() const {
    return static_cast<i32>(band() * Config::raster + in_band() % band_rows());
  }
  __device__ __forceinline__ i32 tile_n() const { return static_cast<i32>(in_band() / band_rows()); }

 private:
  // A band is `raster` rows by all columns, walked row by row inside a column.
  __device__ __forceinline__ u32 band() const { return index_ / (Config::raster * columns_); }
  __device__ __forceinline__ u32 in_band() const { return index_ % (Config::raster * columns_); }
  __device__ __forceinline__ u32 band_rows() const {
    const u32 left = rows_ - band() * Config::raster;
    return left < Config::raster ? left : Config::raster;
  }

  u32 rows_, columns_, index_;
};

}  // namespace mxjit
