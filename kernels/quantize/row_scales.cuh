// What rows that a team holds get for scales, and their bytes: a float for each row, or a scale for each
// block of lanes that hold 32 or 128 elements beside each other.
#pragma once

#include "quantize/factors.cuh"
#include "quantize/mx_numbers.cuh"
#include "quantize/params.cuh"
#include "quantize/row_team.cuh"
#include "quantize/values.cuh"

namespace mxjit {

/// Writes a thread's units: those that are whole first.
template <class Config, class Units>
__device__ __forceinline__ void store_bytes(const QuantizeParams& p, const Units& units,
                                            u32 (&bytes)[Units::count][RowTeam<Config>::unit / 4]) {
  constexpr int unit = RowTeam<Config>::unit;
  const bool wide = (p.wide & wide_q_row) != 0;
  const UnitAddresses<Units, 1> to(p.q_row, p.ld_q_row, units);
#pragma unroll
  for (int i = 0; i < Units::count; ++i) {
    if (!wide || !units.is_whole(i)) continue;
    if constexpr (unit == 8) ptx::st_global(to[i], Vector2{bytes[i][0], bytes[i][1]});
    if constexpr (unit == 4) ptx::st_global(to[i], bytes[i][0]);
  }
  if (wide && p.n % unit == 0) return;
  one_by_one(bytes, [&](int i, const u32(&of)[unit / 4]) {
    const int columns = units.columns_of(i);
    if (wide && columns >= unit) return;
    u8* const at = p.q_row + units.row(i) * p.ld_q_row + units.element_of(i);
    u64 rest = unit == 8 ? u64{of[unit / 4 - 1]} << 32 | of[0] : of[0];
#pragma unroll 1
    for (int e = 0; e < unit && e < columns; ++e, rest >>= 8) ptx::st_global(at + e, static_cast<u8>(rest));
  });
}

/// Writes them in bf16, too, where the configuration asks for it.
template <class Config, class Units>
__device__ __forceinline__ void store_high(const QuantizeParams& p, const Units& units,
                                           const typename Units::Values& x) {
  if constexpr (Config::high == High::row) {
    constexpr int words = RowTeam<Config>::unit / 2;
    const bool wide = (p.wide & wide_y) != 0;
    const UnitAddresses<Units, 2> to(p.y, p.ld_y, units);
    u32 high[Units::count][words];
#pragma unroll
    for (int i = 0; i < Units::count; ++i) {
#pragma unroll
      for (int w = 0; w < words; ++w) high[i][w] = bf16_pair<Config>(x[i][w]);
      if (!wide || !units.is_whole(i)) continue;
      if constexpr (words == 2) ptx::st_global(to[i], Vector2{high[i][0], high[i][1]});
      if constexpr (words == 4)
        ptx::st_global(to[i], Vector4{high[i][0], high[i][1], high[i][2], high[i][3]});
    }
    if (wide && p.n % (2 * words) == 0) return;
    one_by_one(high, [&](int i, const u32(&of)[words]) {
      const int columns = units.columns_of(i);
      if (columns <= 0 || (wide && columns >= 2 * words)) return;
      store_high_run<words>(p.y + units.row(i) * p.ld_y + units.element_of(i),
                            columns < 2 * words ? columns : 2 * words, false, of);
    });
  }
}

// ---- a float for each row

/// What a team tells each other.
template <class Config>
struct RowScaleStaging {
  u32 maxima[Config::rows][Config::threads / 32];
};

/// The largest magnitudes of a thread's units, row by row; `most`: of earlier ones.
template <class Config, class Units>
__device__ __forceinline__ void see_maxima(const typename Units::Values& x,
                                           typename RowTeam<Config>::N::Pair (&most)[Config::rows]) {
#pragma unroll
  for (int i = 0; i < Units::count; ++i)
#pragma unroll
    for (int w = 0; w < RowTeam<Config>::pairs; ++w) {
      auto& row = most[i / Units::per_row];
      row = RowTeam<Config>::N::max_abs(row, x[i][w]);
    }
}

/// From the largest magnitudes of each thread's part of the rows; the scales are written.
template <class Config>
__device__ __forceinline__ void row_factors(const QuantizeParams& p, const RowTeam<Config>& team,
                                            RowScaleStaging<Config>& staging,
                                            const typename RowTeam<Config>::N::Pair (&most)[Config::rows],
                                            float (&factors)[Config::rows]) {
  u32 amax[Config::rows];
#pragma unroll
  for (int r = 0; r < Config::rows; ++r) amax[r] = largest_of<typename RowTeam<Config>::N>(most[r]);
  const u32 largest = over_team<Config>(amax, staging.maxima, [](u32 a, u32 b) { return a > b ? a : b; });
  const float factor = factor_of<Config::format, Config::rounding>(largest, p.amax_cap);
  const i64 row = team.row + team.thread;
  if (team.thread < Config::rows && row < p.m)
    ptx::st_global(static_cast<float*>(p.s_row) + row, __float_as_uint(scale_of(factor)));
#pragma unroll
  for (int r = 0; r < Config::rows; ++r) factors[r] = ptx::shfl(factor, static_cast<u32>(r));
}

template <class Config, class Units>
__device__ __forceinline__ void store_rows(const QuantizeParams& p, const Units& units,
                                           const float (&factors)[Config::rows],
                                           const typename Units::Values& x) {
  constexpr int words = RowTeam<Config>::unit / 4;
  u32 bytes[Units::count][words];
#pragma unroll
  for (int i = 0; i < Units::count; ++i)
#pragma unroll
    for (int w = 0; w < words; ++w)
      bytes[i][w] = scaled_bytes<Config::format, typename RowTeam<Config>::N>(x[i][2 * w], x[i][2 * w + 1],
                                                                              factors[i / Units::per_row]);
  store_bytes<Config>(p, units, bytes);
}

// ---- a scale for each block of lanes

/// How many lanes have a block.
template <class Config>
inline constexpr int block_lanes = Config::block_columns / 8;

/// The largest magnitudes of blocks: of unit 2 * i in the low half, of unit 2 * i + 1 in the high one.
template <class Config, class Units>
__device__ __forceinline__ void block_maxima(const typename Units::Values& x,
                                             u32 (&maxima)[(Units::count + 1) / 2]) {
  using N = typename RowTeam<Config>::N;
  const auto largest = [](const u32(&unit)[4]) {
    return N::max_abs(N::max_abs(unit[0], unit[1]), N::max_abs(unit[2], unit[3]));
  };
#pragma unroll
  for (int i = 0; i < Units::count; i += 2) {
    const u32 first = largest(x[i]), second = i + 1 < Units::count ? largest(x[i + 1]) : 0;
    u32 most = N::max_abs(N::lows(first, second), N::highs(first, second));
#pragma unroll
    for (u32 mask = 1; mask < block_lanes<Config>; mask *= 2)
      most = N::max_abs(most, N::exchange(most, mask));
    maxima[i / 2] = most;
  }
}

/// The code of the block that unit i has a part of, and zeros where blocked codes are padded.
template <class Config, class Units>
__device__ __forceinline__ void store_code(const QuantizeParams& p, const Units& units, int i, u32 code) {
  const i64 row = units.row(i), block = units.element_of(i) / 32, blocks = (p.n + 31) / 32;
  const bool inside = i / Units::per_row < units.rows;
  u8* const to = static_cast<u8*>(p.s_row);
  if constexpr (Config::scale_layout == ScaleLayout::blocked) {
    static_assert(128 % (RowTeam<Config>::teams * Config::rows) == 0, "the grid ends where the padding does");
    const i64 tiles_across = (blocks + 3) / 4;
    if (block >= 4 * tiles_across) return;
    const int in_tile = static_cast<int>(row % 32 * 16 + row % 128 / 32 * 4 + block % 4);
    ptx::st_global(to + (row / 128 * tiles_across + block / 4) * 512 + in_tile,
                   static_cast<u8>(inside ? code : 0));
  } else {
    if (inside && block < blocks) ptx::st_global(to + row * p.ld_s_row + block, static_cast<u8>(code));
  }
}

template <class Config, class Units>
__device__ __forceinline__ void store_mx_blocks(const QuantizeParams& p, const Units& units,
                                                const typename Units::Values& x) {
  using N = Numbers<Config::input>;
  constexpr int pairs = (Units::count + 1) / 2, lanes = block_lanes<Config>;
  u32 maxima[pairs];
  block_maxima<Config, Units>(x, maxima);
  // The lanes of a block keep the codes of a pair of units each, and of the pairs `lanes` further on.
  constexpr int keeps = (pairs + lanes - 1) / lanes;
  u32 kept[keeps] = {};
  const int own = units.team.lane % lanes;
  u32 bytes[Units::count][2];
#pragma unroll
  for (int i = 0; i < Units::count; ++i) {
    const auto scales = N::template scales<Config::format, Config::rounding>(maxima[i / 2]);
    if (own == i / 2 % lanes) kept[i / 2 / lanes] = scales.codes;
    const u32 factors = i % 2 == 0 ? N::splat_low(scales.factors) : N::splat_high(scales.factors);
#pragma unroll
    for (int w = 0; w < 2; ++w) {
      const Floats a = N::scaled(x[i][2 * w], factors), b = N::scaled(x[i][2 * w + 1], factors);
      bytes[i][w] = pack4<Config::format>(a.low, a.high, b.low, b.high);
    }
  }
  store_bytes<Config>(p, units, bytes);
#pragma unroll
  for (int k = 0; k < keeps; ++k) {
    const int i = 2 * (k * lanes + own);
    if (i < Units::count) store_code<Config>(p, units, i, kept[k]);
    if (i + 1 < Units::count) store_code<Config>(p, units, i + 1, kept[k] >> 16);
  }
}

/// The scale of the block that unit i has a part of, and zeros where mn_major scales are padded.
template <class Config, class Units>
__device__ __forceinline__ void store_block_scale(const QuantizeParams& p, const Units& units, int i,
                                                  float scale) {
  const i64 row = units.row(i), block = units.element_of(i) / Config::block_columns;
  const bool inside = i / Units::per_row < units.rows;
  if (block >= (p.n + Config::block_columns - 1) / Config::block_columns) return;
  float* const to = static_cast<float*>(p.s_row);
  if constexpr (Config::scale_layout == ScaleLayout::mn_major) {
    if (row < p.ld_s_row) ptx::st_global(to + block * p.ld_s_row + row, __float_as_uint(inside ? scale : 0));
  } else {
    if (inside) ptx::st_global(to + row * p.ld_s_row + block, __float_as_uint(scale));
  }
}

template <class Config, class Units>
__device__ __forceinline__ void store_float_blocks(const QuantizeParams& p, const Units& units,
                                                   const typename Units::Values& x) {
  constexpr int lanes = block_lanes<Config>;
  static_assert(Units::count <= lanes, "every lane divides for a unit");
  u32 maxima[(Units::count + 1) / 2];
  block_maxima<Config, Units>(x, maxima);
  const int own = units.team.lane % lanes;
  u32 mine = 0;
#pragma unroll
  for (int i = 0; i < Units::count; ++i)
    if (own == i) mine = i % 2 == 0 ? maxima[i / 2] << 16 : maxima[i / 2] & 0xFFFF0000;
  const float own_factor = factor_of<Config::format, Config::rounding>(mine, p.amax_cap);
  if (own < Units::count) store_block_scale<Config>(p, units, own, scale_of(own_factor));
  u32 bytes[Units::count][2];
#pragma unroll
  for (int i = 0; i < Units::count; ++i) {
    const u32 lane = static_cast<u32>(units.team.lane / lanes * lanes + i);
    const float factor = ptx::shfl(own_factor, lane);
#pragma unroll
    for (int w = 0; w < 2; ++w)
      bytes[i][w] =
          scaled_bytes<Config::format, typename RowTeam<Config>::N>(x[i][2 * w], x[i][2 * w + 1], factor);
  }
  store_bytes<Config>(p, units, bytes);
}

template <class Config, class Units>
__device__ __forceinline__ void store_blocks(const QuantizeParams& p, const Units& units,
                                             const typename Units::Values& x) {
  static_assert(Config::input == Input::bf16, "eight elements a lane");
  if constexpr (Config::mx) store_mx_blocks<Config>(p, units, x);
  if constexpr (!Config::mx) store_float_blocks<Config>(p, units, x);
}

}  // namespace mxjit
