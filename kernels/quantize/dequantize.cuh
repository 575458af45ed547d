// FP8 data and its scales back to numbers: x = round(q * scale).
//
// A thread owns patches of 8 rows x 8 columns of the matrix as it was quantized. Axis "row" writes them as
// they lie; axis "col" writes their transpose, turned in registers: a warp then reads runs of 64 bytes and
// writes runs of 32 elements. A patch that reaches over the matrix, over a group's end, or that tensors do
// not allow wide accesses to, goes element by element.
#pragma once

#include "gemm/elements.cuh"
#include "groups/group_ends.cuh"
#include "ptx/memory.cuh"
#include "quantize/dequantize_params.cuh"

namespace mxjit {

struct QuantizeDequantize {
  using Params = DequantizeParams;

  template <class Config>
  static __device__ __forceinline__ void run(const Params& params) {
    __shared__ GroupEnds groups;
    if constexpr (grouped<Config>) {
      // Sizes round up to whole tiles of codes.
      groups.read(params.groups,
                  Config::scale_place == ScalePlace::m_groups ? 128 : 4 * Config::block_columns);
    }
    constexpr DequantizeTile tile = dequantize_tile(Config::axis_col);
    const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
    const int row = Config::axis_col ? warp / 2 * 32 + lane / 8 * 8 : warp * 8;
    const int column = Config::axis_col ? warp % 2 * 64 + lane % 8 * 8 : lane * 8;
    for (u64 t = blockIdx.x; t < params.tiles; t += gridDim.x) {
      const u64 down = t / params.tiles_across;
      Params p = params;
      const i64 expert = static_cast<i64>(down / p.tiles_down);
      p.q += expert * p.rows * p.ld_q;
      p.s = static_cast<const u8*>(p.s) + expert * p.expert_s * (Config::mx ? 1 : 4);
      p.x = static_cast<u8*>(p.x) + expert * (Config::axis_col ? p.columns : p.rows) * p.ld_x * bytes<Config>;
      patch<Config>(p, groups, static_cast<i64>(down % p.tiles_down) * tile.rows + row,
                    static_cast<i64>(t % p.tiles_across) * tile.columns + column);
    }
  }

 private:
  template <class Config>
  static constexpr int bytes = Config::output == Element::fp32 ? 4 : 2;
  template <class Config>
  static constexpr bool grouped =
      Config::scale_place == ScalePlace::m_groups || Config::scale_place == ScalePlace::k_groups ||
      Config::scale_place == ScalePlace::row_of_group;

  // Groups lie along the rows, or along the columns.
  template <class Config>
  static __device__ __forceinline__ i64 along_groups(i64 row, i64 column) {
    return Config::scale_place == ScalePlace::m_groups ? row : column;
  }

  template <class Config>
  static __device__ __forceinline__ void patch(const Params& p, const GroupEnds& groups, i64 row,
                                               i64 column) {
    if (row >= p.rows || column >= p.columns) return;
    int group = 0;
    bool together = p.wide != 0 && row + 8 <= p.rows && column + 8 <= p.columns, owned = true;
    if constexpr (grouped<Config>) {
      const i64 place = along_groups<Config>(row, column);
      group = groups.find(place);
      owned = group < groups.count;
      if (owned && place + 8 > groups.ends[group]) together = false;
    }
    if (!together) return each_element<Config>(p, groups, row, column);

    Vector2 q[8];
    float scales[8];
#pragma unroll
    for (int r = 0; r < 8; ++r) {
      q[r] = owned ? ptx::ld_nc_v2(p.q + (row + r) * p.ld_q + column) : Vector2{0, 0};
      if (r == 0 || !same_for_rows<Config>) {
        scales[r] = owned ? scale<Config>(p, groups, group, row + r, column) : 0.0f;
      } else {
        scales[r] = scales[0];
      }
    }
    u8* const x = static_cast<u8*>(p.x);
    if constexpr (Config::axis_col) {
#pragma unroll
      for (int c = 0; c < 8; c += 2) {
        float low[8], high[8];
#pragma unroll
        for (int r = 0; r < 8; ++r) decode<Config>(q[r], c, scales[r], low[r], high[r]);
        store<Config>(x + ((column + c) * p.ld_x + row) * bytes<Config>, low);
        store<Config>(x + ((column + c + 1) * p.ld_x + row) * bytes<Config>, high);
      }
    } else {
#pragma unroll
      for (int r = 0; r < 8; ++r) {
        float values[8];
#pragma unroll
        for (int c = 0; c < 8; c += 2) decode<Config>(q[r], c, scales[r], values[c], values[c + 1]);
        store<Config>(x + ((row + r) * p.ld_x + column) * bytes<Config>, values);
      }
    }
  }

  // A patch starts on a multiple of 8 rows.
  template <class Config>
  static constexpr bool same_for_rows = Config::scale_place == ScalePlace::tensor ||
                                        ((Config::scale_place == ScalePlace::plain ||
                                          Config::scale_place == ScalePlace::mn_major) &&
                                         Config::block_rows % 8 == 0);

  /// Elements c and c + 1 of eight.
  template <class Config>
  static __device__ __forceinline__ void decode(const Vector2& q, int c, float scale, float& low,
                                                float& high) {
    const u16 pair = static_cast<u16>((c < 4 ? q.x : q.y) >> 8 * (c % 4));
    const u32 halves =
        Config::format == Element::e4m3 ? ptx::cvt_f16x2_e4m3x2(pair) : ptx::cvt_f16x2_e5m2x2(pair);
    low = ptx::cvt_f32_f16(static_cast<u16>(halves)) * scale;
    high = ptx::cvt_f32_f16(static_cast<u16>(halves >> 16)) * scale;
  }

  template <class Config>
  static __device__ __forceinline__ void store(u8* to, const float (&v)[8]) {
    if constexpr (Config::output == Element::fp32) {
      ptx::st_global(to, Vector4{__float_as_uint(v[0]), __float_as_uint(v[1]), __float_as_uint(v[2]),
                                 __float_as_uint(v[3])});
      ptx::st_global(to + 16, Vector4{__float_as_uint(v[4]), __float_as_uint(v[5]), __float_as_uint(v[6]),
                                      __float_as_uint(v[7])});
    } else {
      constexpr Element type = Config::output;
      ptx::st_global(to, Vector4{pack_pair<type>(v[0], v[1]), pack_pair<type>(v[2], v[3]),
                                 pack_pair<type>(v[4], v[5]), pack_pair<type>(v[6], v[7])});
    }
  }

  template <class Config>
  static __device__ __forceinline__ void each_element(const Params& p, const GroupEnds& groups, i64 row,
                                                      i64 column) {
    // Neighbouring threads write neighbouring elements in each turn as far as a patch goes.
#pragma unroll 1
    for (int i = 0; i < 64; ++i) {
      const i64 r = row + (Config::axis_col ? i % 8 : i / 8), c = column + (Config::axis_col ? i / 8 : i % 8);
      if (r >= p.rows || c >= p.columns) continue;
      int group = 0;
      if constexpr (grouped<Config>) group = groups.find(along_groups<Config>(r, c));
      float value = 0.0f, unused;
      if (!grouped<Config> || group < groups.count) {
        const Vector2 q = {ptx::ld_nc_u8(p.q + r * p.ld_q + c), 0};
        decode<Config>(q, 0, scale<Config>(p, groups, group, r, c), value, unused);
      }
      store_element<Config::output>(p.x, Config::axis_col ? c * p.ld_x + r : r * p.ld_x + c, value);
    }
  }

  /// The factor of an element that, with groups, `group` owns.
  template <class Config>
  static __device__ __forceinline__ float scale(const Params& p, const GroupEnds& groups, int group, i64 row,
                                                i64 column) {
    const i64 at = place<Config>(p, groups, group, row, column);
    if constexpr (!Config::mx) return __uint_as_float(ptx::ld_nc_u32(static_cast<const u32*>(p.s) + at));
    const u32 code = ptx::ld_nc_u8(static_cast<const u8*>(p.s) + at);
    return __uint_as_float(code == 0 ? 0x00400000 : code == 255 ? 0x7FC00000 : code << 23);
  }

  template <class Config>
  static __device__ __forceinline__ i64 place(const Params& p, const GroupEnds& groups, int group, i64 row,
                                              i64 column) {
    constexpr int tall = Config::block_rows, wide = Config::block_columns;
    switch (Config::scale_place) {
      case ScalePlace::tensor:
        return 0;
      case ScalePlace::row:
        return row;
      case ScalePlace::row_of_group:
        return group * p.rows + row;
      case ScalePlace::plain:
        return row / tall * p.ld_s + column / wide;
      case ScalePlace::mn_major:
        return column / wide * p.ld_s + row / tall;
      case ScalePlace::blocked:
        return blocked(row, column / wide, (p.columns + wide - 1) / wide);
      case ScalePlace::m_groups:
        return blocked(groups.places[group] + (row - groups.start(group)), column / wide,
                       (p.columns + wide - 1) / wide);
      case ScalePlace::k_groups:
        break;
    }
    // A matrix of the group's own width, after those of the groups before it.
    return (p.rows + 127) / 128 * 128 * (groups.places[group] / wide) +
           blocked(row, (column - groups.start(group)) / wide, (groups.size(group) + wide - 1) / wide);
  }

  /// Byte of code (row, block) in tiles of 128 x 4 codes, `blocks` codes wide.
  static __device__ __forceinline__ i64 blocked(i64 row, i64 block, i64 blocks) {
    return (row / 128 * ((blocks + 3) / 4) + block / 4) * 512 + row % 32 * 16 + row % 128 / 32 * 4 +
           block % 4;
  }
};

}  // namespace mxjit
