// RMSNorm before a quantization, right to the bit: x / sqrt(mean of squares + eps) * weight in double,
// rounded once to bf16. The sums of squares are known; norm_sums.cuh.
#pragma once

#include "quantize/conditional.cuh"
#include "quantize/nearest.cuh"
#include "quantize/panel.cuh"
#include "quantize/params.cuh"

namespace mxjit {

/// What is normalized lies along rows, or down columns: a tile has so many pieces of it, so long.
template <class Config>
struct NormTile {
  static constexpr bool turned = Config::pre == Pre::rmsnorm_turned;
  static constexpr int lines = turned ? Lane<Config>::tile_columns : Lane<Config>::tile_rows;
  static constexpr int length = turned ? Lane<Config>::tile_rows : Lane<Config>::tile_columns;

  double inverse[lines];  // of the root of the mean
  float weight[length];
};

template <class Config>
struct NormStaging {
  static constexpr bool used = Config::pre == Pre::rmsnorm || Config::pre == Pre::rmsnorm_turned;
  typename If<used, NormTile<Config>>::type tile;
};

/// By all threads of the block.
template <class Config>
__device__ __forceinline__ void read_norm(const QuantizeParams& p, const Lane<Config>& lane,
                                          NormTile<Config>& tile) {
  using S = Pairs<Config::stored>;
  using T = NormTile<Config>;
  const i64 first_line = T::turned ? lane.tile_column : lane.tile_row, lines = T::turned ? p.n : p.m;
  const i64 first = T::turned ? lane.tile_row : lane.tile_column, length = T::turned ? p.m : p.n;
  for (int i = static_cast<int>(threadIdx.x); i < T::lines; i += Config::threads) {
    const double sum = first_line + i < lines ? ptx::ld_relaxed(p.sums + first_line + i) : 0.0;
    tile.inverse[i] = 1.0 / sqrt(sum / static_cast<double>(length) + p.eps);
  }
  for (int i = static_cast<int>(threadIdx.x); i < T::length; i += Config::threads) {
    const u8* from = static_cast<const u8*>(p.weight) + (first + i) * S::bytes;
    typename S::Pair pairs[4] = {};
    if (first + i < length) load_lane_row(from, 1, pairs);
    tile.weight[i] = S::widen(pairs[0]).low;
  }
  __syncthreads();
}

/// fp32 is wrong by two roundings of a factor and one of the product, and half a unit below the normal
/// numbers.
using NormMiddle = NearMiddle<4>;

/// A factor whose product with another such neither overflows nor loses digits.
__device__ __forceinline__ bool is_moderate(float factor) {
  const u32 bits = __float_as_uint(factor) & 0x7FFFFFFF;
  constexpr u32 least = (127 - 60) << 23, most = (127 + 60) << 23;
  return bits == 0 || bits - least <= most - least;
}

/// For compute_pieces: the rows of a lane.
template <class Config>
struct NormSource {
  using S = Pairs<Config::stored>;
  using T = NormTile<Config>;
  struct Operands {
    typename S::Pair x[4];
  };
  static constexpr int ahead = S::bytes == 2 ? 4 : 2;

  const QuantizeParams& p;
  const Lane<Config>& lane;
  const T& tile;
  const float (&factors)[lane_columns];  // of the lane's columns
  bool moderate;                         // all of those

  __device__ __forceinline__ const u8* from(int r) const {
    return static_cast<const u8*>(p.x) + ((lane.row + r) * p.ld_x + lane.column) * S::bytes;
  }
  __device__ __forceinline__ void load(int r, Operands& to) const { load_lane_row(from(r), to.x); }
  __device__ __forceinline__ void load_some(int r, Operands& to) const {
    load_lane_row(from(r), lane.columns, to.x);
  }

  __device__ __forceinline__ bool fast(int r, const Operands& operands, u32 (&to)[4]) const {
    const int row = lane.row_in_tile + r;
    float factor;
    if constexpr (T::turned) factor = tile.weight[row];
    if constexpr (!T::turned) factor = static_cast<float>(tile.inverse[row]);
    NormMiddle middle;
    u32 largest = 0;
#pragma unroll
    for (int w = 0; w < 4; ++w) {
      const Floats x = S::widen(operands.x[w]);
      const float low = __fmul_rn(x.low, __fmul_rn(factors[2 * w], factor));
      const float high = __fmul_rn(x.high, __fmul_rn(factors[2 * w + 1], factor));
      to[w] = ptx::cvt_bf16x2_f32(low, high);
      largest = w == 0 ? to[0] : ptx::max_abs_bf16x2(largest, to[w]);
      middle.see(low, high);
    }
    return !moderate || !is_moderate(factor) || middle.any() ||
           NormMiddle::half_reaches(largest & 0x7FFF7FFF, bf16_infinity);
  }

  __device__ __forceinline__ void exact(int r, const Operands& operands, u32 (&to)[4]) const {
    const int row = lane.row_in_tile + r;
    const auto value = [&](float x, int c) {
      const int column = lane.column_in_tile + c;
      return nearest_bf16(x * tile.inverse[T::turned ? column : row] * tile.weight[T::turned ? row : column]);
    };
#pragma unroll
    for (int w = 0; w < 4; ++w) {
      const Floats x = S::widen(operands.x[w]);
      to[w] = value(x.low, 2 * w) | value(x.high, 2 * w + 1) << 16;
    }
    // Columns outside the matrix stay zero, whatever zero times the factors is.
#pragma unroll
    for (int w = 0; w < 4; ++w) {
      if (2 * w >= lane.columns) to[w] = 0;
      if (2 * w + 1 == lane.columns) to[w] &= 0xFFFF;
    }
  }
};

/// As load_panel, of the values after RMSNorm.
template <class Config>
__device__ __forceinline__ void load_norm_panel(const QuantizeParams& p, const Lane<Config>& lane,
                                                NormTile<Config>& tile, u32 (&x)[Config::rows_per_lane][4]) {
  read_norm<Config>(p, lane, tile);
  const RowMasks<Config> masks(p, lane);
  float factors[lane_columns];
  bool moderate = true;
#pragma unroll
  for (int c = 0; c < lane_columns; ++c) {
    const int column = lane.column_in_tile + c;
    if constexpr (NormTile<Config>::turned) factors[c] = static_cast<float>(tile.inverse[column]);
    if constexpr (!NormTile<Config>::turned) factors[c] = tile.weight[column];
    moderate = moderate && is_moderate(factors[c]);
  }
  compute_pieces(NormSource<Config>{p, lane, tile, factors, moderate}, masks.whole, masks.some, x);
  // Rows outside the matrix are zero times what may be no number.
#pragma unroll
  for (int r = 0; r < Config::rows_per_lane; ++r)
#pragma unroll
    for (int w = 0; w < 4; ++w)
      if ((masks.some >> r & 1) == 0) x[r][w] = 0;
}

}  // namespace mxjit
