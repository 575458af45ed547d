// The order in which persistent blocks take tiles: `raster` tile rows at a time, so that a wave shares A and
// B in L2.
#pragma once

#include "ptx/types.cuh"

namespace mxjit {

template <class Config>
class TileWalk {
 public:
  __device__ TileWalk(i32 m, i32 n, u32 rank) : rank_(static_cast<i32>(rank)) {
    const i32 tiles_m = (m + Config::block_m - 1) / Config::block_m;
    rows_ = (tiles_m + Config::cluster - 1) / Config::cluster;  // in clusters
    columns_ = (n + Config::block_n - 1) / Config::block_n;
    index_ = static_cast<i32>(blockIdx.x) / Config::cluster;
    stride_ = static_cast<i32>(gridDim.x) / Config::cluster;
  }
  __device__ bool valid() const { return index_ < rows_ * columns_; }
  __device__ void next() { index_ += stride_; }
  __device__ i32 tile_m() const { return cluster_row() * Config::cluster + rank_; }
  __device__ i32 tile_n() const { return (index_ % band_size()) / band_rows(); }

 private:
  // A band is `raster` cluster rows by all columns, walked row by row inside a column.
  __device__ i32 band_size() const { return Config::raster * columns_; }
  __device__ i32 band() const { return index_ / band_size(); }
  __device__ i32 band_rows() const {
    const i32 left = rows_ - band() * Config::raster;
    return left < Config::raster ? left : Config::raster;
  }
  __device__ i32 cluster_row() const {
    return band() * Config::raster + (index_ % band_size()) % band_rows();
  }

  i32 rank_, rows_, columns_, index_, stride_;
};

}  // namespace mxjit
