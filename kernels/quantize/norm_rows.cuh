// RMSNorm of rows that a team of threads holds. fp32 does the work; what it may not be right for is found
// again, from memory, in one place and in double.
#pragma once

#include "quantize/norm_values.cuh"
#include "quantize/params.cuh"
#include "quantize/row_team.cuh"

namespace mxjit {

/// Eight elements as they are stored.
template <class Config>
using StoredUnit = typename Pairs<Config::stored>::Pair[4];

/// What a team tells each other.
template <class Config>
struct NormRowsStaging {
  double sums[Config::rows][Config::threads / 32];
};

/// Those of `count` elements that there are, the others zero, one after the other: this way is short.
__device__ __forceinline__ void load_narrow_unit(const u8* from, int count, u32 (&to)[4]) {
#pragma unroll 1
  for (int e = 0; e < 8; ++e, from += 2) {
    const u32 next = e < count ? ptx::ld_nc_u16(from) : u16{0};
#pragma unroll
    for (int w = 0; w < 3; ++w) to[w] = ptx::prmt(to[w], to[w + 1], 0x5432);
    to[3] = ptx::prmt(to[3], next, 0x5432);
  }
}

__device__ __forceinline__ void load_narrow_unit(const u8* from, int count, Vector2 (&to)[4]) {
#pragma unroll 1
  for (int e = 0; e < 8; ++e, from += 4) {
    const u32 next = e < count ? ptx::ld_nc_u32(from) : 0;
#pragma unroll
    for (int w = 0; w < 4; ++w) to[w] = {to[w].y, w < 3 ? to[w + 1].x : next};
  }
}

/// Eight elements at a multiple of 16 bytes, or zeros.
template <class Config>
__device__ __forceinline__ void load_whole_unit(bool condition, const u8* from, StoredUnit<Config>& to) {
  constexpr int vectors = Pairs<Config::stored>::bytes / 2;
  Vector4 loaded[vectors];
#pragma unroll
  for (int v = 0; v < vectors; ++v) loaded[v] = ptx::ld_nc_v4_if(condition, from + v * 16);
  unpack_units(loaded, to);
}

/// `columns` elements, at most eight; the others zero. `wide`: at a multiple of 16 bytes.
template <class Config>
__device__ __forceinline__ void load_stored(const u8* from, int columns, bool wide, StoredUnit<Config>& to) {
  load_whole_unit<Config>(wide && columns >= 8, from, to);
  if (columns > 0 && !(wide && columns >= 8)) load_narrow_unit(from, columns, to);
}

/// Where an element of x or of the weights lies.
template <class Config>
__device__ __forceinline__ const u8* stored_at(const void* base, i64 element) {
  return static_cast<const u8*>(base) + element * Pairs<Config::stored>::bytes;
}

/// All units of a thread, those outside the matrix zero.
template <class Config, class Units>
__device__ __forceinline__ void load_stored_units(const QuantizeParams& p, const Units& units,
                                                  StoredUnit<Config> (&to)[Units::count]) {
  const bool wide = (p.wide & wide_x) != 0;
  const UnitAddresses<Units, Pairs<Config::stored>::bytes> from(p.x, p.ld_x, units);
#pragma unroll
  for (int i = 0; i < Units::count; ++i) load_whole_unit<Config>(wide && units.is_whole(i), from[i], to[i]);
  if (wide && p.n % 8 == 0) return;
  one_by_one(to, [&](int i, StoredUnit<Config>& unit) {
    const int columns = units.columns_of(i);
    if (columns > 0 && !(wide && columns >= 8))
      load_narrow_unit(stored_at<Config>(p.x, units.row(i) * p.ld_x + units.element_of(i)), columns, unit);
  });
}

__device__ __forceinline__ bool has_wide_weights(const QuantizeParams& p) {
  return reinterpret_cast<u64>(p.weight) % 16 == 0;
}

/// The weights of a thread's units, which are the same for all rows.
template <class Config, class Units>
__device__ __forceinline__ void load_weights(const QuantizeParams& p, const Units& units,
                                             StoredUnit<Config> (&to)[Units::per_row]) {
  constexpr int apart = Units::Team::apart;
  const bool wide = has_wide_weights(p);
  const u8* const from = stored_at<Config>(p.weight, units.element);
#pragma unroll
  for (int u = 0; u < Units::per_row; ++u)
    load_whole_unit<Config>(wide && units.columns >= u * apart + 8,
                            from + u * apart * Pairs<Config::stored>::bytes, to[u]);
  if (wide && p.n % 8 == 0) return;
  one_by_one(to, [&](int u, StoredUnit<Config>& unit) {
    const int columns = units.columns - u * apart;
    if (columns > 0 && !(wide && columns >= 8))
      load_narrow_unit(stored_at<Config>(p.weight, units.element + u * apart), columns, unit);
  });
}

/// In double, where products are exact, so that only the additions round.
template <class Config, class Units>
__device__ __forceinline__ void add_squares(const StoredUnit<Config> (&x)[Units::count],
                                            double (&sums)[Config::rows]) {
  double odd[Config::rows] = {};  // two sums a row, so that the one need not wait for the other
#pragma unroll
  for (int i = 0; i < Units::count; ++i)
#pragma unroll
    for (int w = 0; w < 4; ++w) {
      const Floats wide = Pairs<Config::stored>::widen(x[i][w]);
      const double low = wide.low, high = wide.high;
      sums[i / Units::per_row] += low * low;
      odd[i / Units::per_row] += high * high;
    }
#pragma unroll
  for (int r = 0; r < Config::rows; ++r) sums[r] += odd[r];
}

/// Every weight is_moderate: found from all of them at once where they are short.
template <class Config, int count>
__device__ __forceinline__ bool are_moderate(const StoredUnit<Config> (&weights)[count]) {
  if constexpr (Config::stored == Input::fp32) {
    bool all = true;
#pragma unroll
    for (const StoredUnit<Config>& unit : weights)
#pragma unroll
      for (int w = 0; w < 4; ++w)
        all = all && is_moderate(__uint_as_float(unit[w].x)) && is_moderate(__uint_as_float(unit[w].y));
    return all;
  } else {
    u32 most = 0, least = 0xFFFFFFFF;  // the latter of magnitudes less one, so that zeros are the largest
#pragma unroll
    for (const StoredUnit<Config>& unit : weights)
#pragma unroll
      for (int w = 0; w < 4; ++w) {
        const u32 magnitudes = unit[w] & 0x7FFF7FFF;
        most = ptx::add_max_u16x2(magnitudes, 0, most);
        least = ptx::add_min_u16x2(magnitudes, 0xFFFFFFFF, least);
      }
    most = ptx::add_max_u16x2(ptx::prmt(most, most, 0x1032), 0, most) >> 16;
    least = ptx::add_min_u16x2(ptx::prmt(least, least, 0x1032), 0, least) >> 16;
    if constexpr (Config::stored == Input::fp16) return most < 0x7C00;  // none is too small
    return most <= most_moderate >> 16 && least >= (least_moderate >> 16) - 1;
  }
}

/// The inverse of the root of the mean of a row's squares, of which every thread has a part: lane l has that
/// of row l % rows.
template <class Config>
__device__ __forceinline__ double inverse_root(const QuantizeParams& p, NormRowsStaging<Config>& staging,
                                               double (&sums)[Config::rows]) {
  const double sum = over_team<Config>(sums, staging.sums, [](double a, double b) { return a + b; });
  return 1.0 / sqrt(sum / static_cast<double>(p.n) + p.eps);
}

/// x / root * weight in bf16.
template <class Config>
__device__ __forceinline__ u32 normalized(float x, float weight, double inverse, bool fast) {
  const float y = __fmul_rn(x, __fmul_rn(weight, static_cast<float>(inverse)));
  if (fast && !NormMiddle::is(y)) return ptx::cvt_bf16x2_f32(y, 0.0f) & 0xFFFF;
  return nearest_bf16(x * inverse * weight);
}

/// Units whose bits are in `doubtful`, exactly; outside the matrix zero, whatever the root is.
template <class Config, class Units>
__device__ __forceinline__ void correct(const QuantizeParams& p, const Units& units, double inverse_of_lane,
                                        u32 doubtful, typename Units::Values& x) {
  using S = Pairs<Config::stored>;
#pragma unroll 1
  for (; ptx::any(doubtful != 0); doubtful &= doubtful - 1) {
    const int i = doubtful != 0 ? __ffs(static_cast<int>(doubtful)) - 1 : 0;
    const double inverse = ptx::shfl(inverse_of_lane, static_cast<u32>(i / Units::per_row));
    if (doubtful == 0) continue;
    const int columns = units.columns_of(i);
    StoredUnit<Config> stored, weights[1];
    load_stored<Config>(stored_at<Config>(p.x, units.row(i) * p.ld_x + units.element_of(i)), columns,
                        (p.wide & wide_x) != 0, stored);
    load_stored<Config>(stored_at<Config>(p.weight, units.element_of(i)), columns, has_wide_weights(p),
                        weights[0]);
    const bool fast = is_moderate_factor(static_cast<float>(inverse)) && are_moderate<Config>(weights);
    u32 exact[4];
#pragma unroll
    for (int w = 0; w < 4; ++w) {
      const Floats a = S::widen(stored[w]), b = S::widen(weights[0][w]);
      const u32 low = normalized<Config>(a.low, b.low, inverse, fast);
      const u32 high = normalized<Config>(a.high, b.high, inverse, fast);
      exact[w] = (2 * w < columns ? low : 0) | (2 * w + 1 < columns ? high << 16 : 0);
    }
#pragma unroll
    for (int k = 0; k < Units::count; ++k)
#pragma unroll
      for (int w = 0; w < 4; ++w)
        if (k == i) x[k][w] = exact[w];
  }
}

/// A thread's units after RMSNorm, with what inverse_root gave each lane. Elements outside the matrix are
/// zero in rows inside it.
template <class Config, class Units>
__device__ __forceinline__ void normalize_units(const QuantizeParams& p, const Units& units,
                                                double inverse_of_lane,
                                                const StoredUnit<Config> (&stored)[Units::count],
                                                const StoredUnit<Config> (&weights)[Units::per_row],
                                                typename Units::Values& x) {
  using S = Pairs<Config::stored>;
  const bool moderate = are_moderate<Config>(weights);
  float factors[Config::rows];
  bool fast[Config::rows];
#pragma unroll
  for (int r = 0; r < Config::rows; ++r) {
    factors[r] = ptx::shfl(static_cast<float>(inverse_of_lane), static_cast<u32>(r));
    fast[r] = moderate && is_moderate_factor(factors[r]);
  }
  u32 doubtful = 0;
#pragma unroll
  for (int u = 0; u < Units::per_row; ++u)
#pragma unroll
    for (int r = 0; r < Config::rows; ++r) {
      const int i = r * Units::per_row + u;
      NormMiddle middle;
#pragma unroll
      for (int w = 0; w < 4; ++w) {
        const Floats a = S::widen(stored[i][w]), b = S::widen(weights[u][w]);
        const float low = __fmul_rn(a.low, __fmul_rn(b.low, factors[r]));
        const float high = __fmul_rn(a.high, __fmul_rn(b.high, factors[r]));
        x[i][w] = ptx::cvt_bf16x2_f32(low, high);
        middle.see(low, high);
      }
      if (!fast[r] || middle.any()) doubtful |= 1u << i;
    }
  correct<Config>(p, units, inverse_of_lane, doubtful, x);
}

}  // namespace mxjit
