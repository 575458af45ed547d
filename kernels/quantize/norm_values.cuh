// RMSNorm before a quantization, right to the bit: x / sqrt(mean of squares + eps) * weight in double,
// rounded once to bf16. The sums of squares are known; norm_sums.cuh.
#pragma once

#include "quantize/nearest.cuh"
#include "quantize/panel.cuh"
#include "quantize/params.cuh"
#include "quantize/pieces.cuh"

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

/// fp32 is wrong by less than 2.5 units of the last place: by two roundings of factors, each less than a unit
/// of the product, and by half a unit for the product's own.
using NormMiddle = NearMiddle<2>;

/// Of magnitudes whose product with another such neither overflows nor loses digits.
inline constexpr u32 least_moderate = (127 - 60) << 23, most_moderate = (127 + 60) << 23;

/// A weight whose product with a moderate factor is right.
__device__ __forceinline__ bool is_moderate(float weight) {
  const u32 bits = __float_as_uint(weight) & 0x7FFFFFFF;
  return bits == 0 || bits - least_moderate <= most_moderate - least_moderate;
}

/// The inverse of a root, rounded: zero may stand for what fp32 does not reach.
__device__ __forceinline__ bool is_moderate_factor(float inverse) {
  return __float_as_uint(inverse) - least_moderate <= most_moderate - least_moderate;
}

/// Source of pieces: the rows of a lane.
template <class Config>
struct NormSource {
  using S = Pairs<Config::stored>;
  using T = NormTile<Config>;
  struct Operands {
    typename S::Pair x[4];
  };
  static constexpr int units = S::bytes / 2;

  const QuantizeParams& p;
  const Lane<Config>& lane;
  const T& tile;
  const float (&factors)[lane_columns];  // of the lane's columns
  const bool& moderate;                  // all of those

  __device__ __forceinline__ const u8* from(int r) const {
    return static_cast<const u8*>(p.x) + ((lane.row + r) * p.ld_x + lane.column) * S::bytes;
  }
  static __device__ __forceinline__ i64 offset(int u) { return u * 16; }
  static __device__ __forceinline__ void unpack(const Vector4 (&from)[units], Operands& to) {
    unpack_units(from, to.x);
  }
  __device__ __forceinline__ int columns(int) const { return lane.columns; }

  __device__ __forceinline__ bool fast(int r, const Operands& operands, u32 (&to)[4]) const {
    const float factor = row_factor(r);
    NormMiddle middle;
#pragma unroll
    for (int w = 0; w < 4; ++w) {
      const Floats y = product(operands, w, factor);
      to[w] = ptx::cvt_bf16x2_f32(y.low, y.high);
      middle.see(y.low, y.high);
    }
    return !moderate || !is_moderate_row(factor) || middle.any();
  }
  __device__ __forceinline__ u32 doubtful(int r, const Operands& operands) const {
    const float factor = row_factor(r);
    if (!moderate || !is_moderate_row(factor)) return 0xFF;
    u32 elements = 0;
#pragma unroll
    for (int w = 0; w < 4; ++w) {
      const Floats y = product(operands, w, factor);
      if (NormMiddle::is(y.low)) elements |= 1u << 2 * w;
      if (NormMiddle::is(y.high)) elements |= 2u << 2 * w;
    }
    return elements;
  }
  static constexpr bool finds_elements = false;  // that takes more registers than memory takes time
  using Element = float;
  __device__ __forceinline__ float element(int r, int c) const {
    return load_element<S>(from(r) + c * S::bytes);
  }
  __device__ __forceinline__ u32 nearest(int r, int c, double x) const {
    const int row = lane.row_in_tile + r, column = lane.column_in_tile + c;
    return nearest_bf16(x * tile.inverse[T::turned ? column : row] * tile.weight[T::turned ? row : column]);
  }

 private:
  static __device__ __forceinline__ bool is_moderate_row(float factor) {
    return T::turned ? is_moderate(factor) : is_moderate_factor(factor);
  }
  __device__ __forceinline__ float row_factor(int r) const {
    if constexpr (T::turned) return tile.weight[lane.row_in_tile + r];
    if constexpr (!T::turned) return static_cast<float>(tile.inverse[lane.row_in_tile + r]);
  }
  __device__ __forceinline__ Floats product(const Operands& operands, int w, float factor) const {
    const Floats x = S::widen(operands.x[w]);
    return {__fmul_rn(x.low, __fmul_rn(factors[2 * w], factor)),
            __fmul_rn(x.high, __fmul_rn(factors[2 * w + 1], factor))};
  }
};

/// As load_panel, of the values after RMSNorm.
template <class Config, class Ring>
__device__ __forceinline__ void load_norm_panel(const QuantizeParams& p, const Lane<Config>& lane,
                                                NormTile<Config>& tile, Ring& ring,
                                                u32 (&x)[Config::rows_per_lane][4]) {
  const RowMasks<Config> masks(p, lane);
  float factors[lane_columns];
  bool moderate = true;
  const NormSource<Config> source{p, lane, tile, factors, moderate};
  PiecesInRing<NormSource<Config>, Ring> pieces{ring, source.from(0), p.ld_x * NormSource<Config>::S::bytes};
  start_pieces<Config::rows_per_lane>(source, pieces, masks.whole);
  read_norm<Config>(p, lane, tile);
#pragma unroll
  for (int c = 0; c < lane_columns; ++c) {
    const int column = lane.column_in_tile + c;
    if constexpr (NormTile<Config>::turned) {
      factors[c] = static_cast<float>(tile.inverse[column]);
      moderate = moderate && is_moderate_factor(factors[c]);
    } else {
      factors[c] = tile.weight[column];
      moderate = moderate && is_moderate(factors[c]);
    }
  }
  compute_pieces(source, pieces, masks.whole, masks.some, x);
  // Rows outside the matrix are zero times what may be no number.
#pragma unroll
  for (int r = 0; r < Config::rows_per_lane; ++r)
#pragma unroll
    for (int w = 0; w < 4; ++w)
      if ((masks.some >> r & 1) == 0) x[r][w] = 0;
}

}  // namespace mxjit
