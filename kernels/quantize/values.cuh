// The values that are quantized, in a warp's panel: x itself, or what another operation makes of it first.
#pragma once

#include "quantize/conditional.cuh"
#include "quantize/norm_values.cuh"
#include "quantize/panel.cuh"
#include "quantize/params.cuh"
#include "quantize/pieces.cuh"
#include "quantize/swiglu.cuh"

namespace mxjit {

/// What computing them takes of shared memory.
template <class Config>
struct ValueStaging {
  static constexpr bool computed = Config::pre != Pre::none;
  static constexpr bool normalized = Config::pre == Pre::rmsnorm || Config::pre == Pre::rmsnorm_turned;
  // Gates and ups, or x, in what else there is leaves of 48 KB: groups' ends and what lies before them, code
  // tiles, and factors, maxima or a NormTile, which are less than 3 KB.
  static constexpr int bands = (Lane<Config>::tile_rows + 127) / 128;
  static constexpr int code_tiles =
      bands * ((Lane<Config>::tile_columns + 127) / 128) + (Config::col ? bands : 0);
  static constexpr int left =
      45 * 1024 - 512 * code_tiles - (Config::group_alignment > 0 ? 12 * Config::max_groups : 0);
  static constexpr int ring_kilobytes = left < 40 * 1024 ? left / 1024 : 40;
  using Ring = PieceRing<Pairs<Config::stored>::bytes / (normalized ? 2 : 1), Config::threads, ring_kilobytes,
                         Config::rows_per_lane>;

  typename If<normalized, NormTile<Config>>::type norm;
  typename If<computed, Ring>::type ring;
};

/// The lane's elements; those outside the matrix are zero.
template <class Config, class Pair>
__device__ __forceinline__ void load_values(const QuantizeParams& p, Lane<Config>& lane,
                                            ValueStaging<Config>& staging,
                                            Pair (&x)[Config::rows_per_lane][4]) {
  static_assert(Config::pre == Pre::none || Config::input == Input::bf16, "values are rounded to bf16");
  if constexpr (Config::pre == Pre::none) {
    load_panel<Config>(p, lane, x);
  } else {
    if constexpr (ValueStaging<Config>::normalized) {
      load_norm_panel<Config>(p, lane, staging.norm, staging.ring, x);
    } else {
      load_swiglu_panel<Config>(p, lane, staging.ring, x);
    }
    lane = lane.again(p);
  }
}

/// A pair rounded to bf16, any NaN to the one that conversions make.
template <class Config, class Pair>
__device__ __forceinline__ u32 bf16_pair(Pair pair) {
  if constexpr (Config::pre != Pre::none) {
    return pair;
  } else {
    const Floats wide = Pairs<Config::input>::widen(pair);
    return ptx::cvt_bf16x2_f32(wide.low, wide.high);
  }
}

/// The first `count` of a run of bf16 numbers; all at once where they are many and `wide`.
template <int words>
__device__ __forceinline__ void store_high_run(u16* to, int count, bool wide, const u32 (&values)[words]) {
  if (wide && count == 2 * words) {
    if constexpr (words == 2) ptx::st_global(to, Vector2{values[0], values[1]});
    if constexpr (words > 2) {
#pragma unroll
      for (int w = 0; w < words; w += 4)
        ptx::st_global(to + 2 * w, Vector4{values[w], values[w + 1], values[w + 2], values[w + 3]});
    }
  } else {
#pragma unroll
    for (int w = 0; w < words; ++w) {
      if (2 * w < count) ptx::st_global(to + 2 * w, static_cast<u16>(values[w]));
      if (2 * w + 1 < count) ptx::st_global(to + 2 * w + 1, static_cast<u16>(values[w] >> 16));
    }
  }
}

/// Writes the lane's elements in bf16 where the configuration asks for it.
template <class Config, class Pair>
__device__ __forceinline__ void store_high(const QuantizeParams& p, const Lane<Config>& lane,
                                           const Pair (&x)[Config::rows_per_lane][4]) {
  const bool wide = (p.wide & wide_y) != 0;
  if constexpr (Config::high == High::row) {
    u16* to = p.y + lane.row * p.ld_y + lane.column;
#pragma unroll
    for (int r = 0; r < Config::rows_per_lane; ++r, to += p.ld_y) {
      if (r >= lane.rows) continue;
      store_high_run<4>(to, lane.columns, wide,
                        {bf16_pair<Config>(x[r][0]), bf16_pair<Config>(x[r][1]), bf16_pair<Config>(x[r][2]),
                         bf16_pair<Config>(x[r][3])});
    }
  }
  if constexpr (Config::high == High::turned) {
    constexpr int words = Config::rows_per_lane / 2;
    u16* to = p.y + lane.column * p.ld_y + lane.row;
#pragma unroll
    for (int w = 0; w < 4; ++w) {
      u32 low[words], high[words];
#pragma unroll
      for (int i = 0; i < words; ++i) {
        const u32 a = bf16_pair<Config>(x[2 * i][w]), b = bf16_pair<Config>(x[2 * i + 1][w]);
        low[i] = PackedPairs::lows(a, b), high[i] = PackedPairs::highs(a, b);
      }
      if (2 * w < lane.columns) store_high_run(to, lane.rows, wide, low);
      if (2 * w + 1 < lane.columns) store_high_run(to + p.ld_y, lane.rows, wide, high);
      to += 2 * p.ld_y;
    }
  }
}

}  // namespace mxjit
