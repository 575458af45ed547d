// Quantization of a matrix with a float scale a row, reading it once; after RMSNorm, if asked for.
//
// A team of warps holds `rows` rows in registers: a warp, where a row is short enough, else the thread block.
// Rows that are longer than registers hold are read twice, after RMSNorm three times, from the cache.
#pragma once

#include "quantize/conditional.cuh"
#include "quantize/factors.cuh"
#include "quantize/groups.cuh"
#include "quantize/norm_rows.cuh"
#include "quantize/panel.cuh"
#include "quantize/params.cuh"
#include "quantize/values.cuh"

namespace mxjit {

template <class Config>
struct RowsStaging {
  static constexpr int warps = Config::threads / 32;
  u32 maxima[Config::rows][warps];
  double sums[Config::rows][warps];
  typename If<(Config::group_alignment > 0), GroupTable<Config::max_groups>>::type groups;
};

struct QuantizeFp32Rows {
  using Params = QuantizeParams;

  template <class Config>
  static __device__ __forceinline__ void run(const Params& p) {
    __shared__ RowsStaging<Config> staging;
    if constexpr (Config::group_alignment > 0) {
      if (blockIdx.x == 0 && threadIdx.x < 32) {
        read_groups<Config::group_alignment, 128>(p, p.m, true, staging.groups);
      }
    }
    quantize<Config>(p, staging);
  }

 private:
  /// Where this thread stands in its team.
  template <class Config>
  struct Team {
    using N = Pairs<Config::input>;
    static constexpr int unit = 16 / N::bytes;  // elements that a thread reads and writes at once
    static constexpr int pairs = unit / 2;
    static constexpr int threads = 32 * Config::warps;
    static constexpr int teams = Config::threads / threads;  // a thread block

    using Unit = typename N::Pair[pairs];
    int thread = static_cast<int>(threadIdx.x) % threads;
    i64 row = (i64{blockIdx.x} * teams + static_cast<int>(threadIdx.x) / threads) * Config::rows;
  };

  template <class Config>
  static __device__ __forceinline__ void load(const Params& p, i64 row, i64 element,
                                              typename Team<Config>::Unit& to) {
    constexpr int unit = Team<Config>::unit, bytes = Pairs<Config::input>::bytes;
    const u8* from = static_cast<const u8*>(p.x) + (row * p.ld_x + element) * bytes;
    const i64 left = row < p.m ? p.n - element : 0;
    if ((p.wide & wide_x) != 0 && left >= unit) {
      load_lane_row(from, to);
    } else {
      load_lane_row(from, left < 0 ? 0 : left < unit ? static_cast<int>(left) : unit, to);
    }
  }

  /// `count` units of the team's rows, those of a row first, the first of them at `element`.
  template <class Config, int count>
  static __device__ __forceinline__ void load_units(const Params& p, const Team<Config>& team, i64 element,
                                                    typename Team<Config>::Unit (&to)[count]) {
    using T = Team<Config>;
    const auto row_of = [&](int i) { return team.row + i / (count / Config::rows); };
    const auto element_of = [&](int i) {
      return element + i64{i % (count / Config::rows) * T::threads} * T::unit;
    };
    if constexpr (Config::pre == Pre::none) {
#pragma unroll
      for (int i = 0; i < count; ++i) load<Config>(p, row_of(i), element_of(i), to[i]);
    } else {
      const auto columns_of = [&](int i) {
        const i64 left = row_of(i) < p.m ? p.n - element_of(i) : 0;
        return left < 0 ? 0 : left < T::unit ? static_cast<int>(left) : T::unit;
      };
      u32 some = 0, whole = 0;
#pragma unroll
      for (int i = 0; i < count; ++i) {
        if (columns_of(i) > 0) some |= 1u << i;
        if (columns_of(i) == T::unit && (p.wide & wide_x) != 0) whole |= 1u << i;
      }
      const auto from = [&](int i) {
        const i64 at = row_of(i) * p.ld_x + element_of(i) * gate_step<Config>;
        return static_cast<const u8*>(p.x) + at * Pairs<Config::stored>::bytes;
      };
      const auto source = swiglu_source<Config>(p.swiglu, from, columns_of);
      PiecesInRegisters<decltype(source)> pieces;
      start_pieces<count>(source, pieces, whole);
      compute_pieces(source, pieces, whole, some, to);
    }
  }

  template <class Config>
  static __device__ __forceinline__ void store(const Params& p, i64 row, i64 element,
                                               const typename Team<Config>::Unit& x, float factor) {
    using N = Pairs<Config::input>;
    constexpr int unit = Team<Config>::unit;
    const i64 left = row < p.m ? p.n - element : 0;
    if (left <= 0) return;
    if constexpr (Config::high == High::row) {
      u32 high[unit / 2];
#pragma unroll
      for (int i = 0; i < unit / 2; ++i) high[i] = bf16_pair<Config>(x[i]);
      store_high_run(p.y + row * p.ld_y + element, left < unit ? static_cast<int>(left) : unit,
                     (p.wide & wide_y) != 0, high);
    }
    u32 bytes[unit / 4];
#pragma unroll
    for (int i = 0; i < unit / 4; ++i)
      bytes[i] = scaled_bytes<Config::format, N>(x[2 * i], x[2 * i + 1], factor);
    u8* to = p.q_row + row * p.ld_q_row + element;
    if ((p.wide & wide_q_row) != 0 && left >= unit) {
      if constexpr (unit == 8) ptx::st_global(to, Vector2{bytes[0], bytes[1]});
      if constexpr (unit == 4) ptx::st_global(to, bytes[0]);
    } else {
      u64 rest = unit == 8 ? u64{bytes[unit / 4 - 1]} << 32 | bytes[0] : bytes[0];
#pragma unroll 1
      for (int i = 0; i < unit && i < left; ++i, rest >>= 8) ptx::st_global(to + i, static_cast<u8>(rest));
    }
  }

  /// The larger of both, over the team.
  template <class Config>
  static __device__ __forceinline__ void over_team(RowsStaging<Config>& staging, u32 (&amax)[Config::rows]) {
    const int lane = static_cast<int>(threadIdx.x % 32);
#pragma unroll
    for (int r = 0; r < Config::rows; ++r) amax[r] = over_warp(amax[r]);
    if constexpr (Config::warps > 1) {
      if (lane == 0) {
#pragma unroll
        for (int r = 0; r < Config::rows; ++r) staging.maxima[r][threadIdx.x / 32] = amax[r];
      }
      __syncthreads();
#pragma unroll
      for (int r = 0; r < Config::rows; ++r)
        amax[r] = over_warp(staging.maxima[r][lane < Config::warps ? lane : 0]);
    }
  }

  static __device__ __forceinline__ u32 over_warp(u32 value) {
#pragma unroll
    for (u32 mask = 1; mask < 32; mask *= 2) {
      const u32 other = ptx::shfl_xor(value, mask);
      value = other > value ? other : value;
    }
    return value;
  }

  /// The inverse of the root of the mean of squares, whose sums the threads of a team have parts of.
  template <class Config>
  static __device__ __forceinline__ void invert(const Params& p, RowsStaging<Config>& staging,
                                                double (&sum)[Config::rows]) {
    const int lane = static_cast<int>(threadIdx.x % 32);
#pragma unroll
    for (int r = 0; r < Config::rows; ++r) sum[r] = sum_over_warp(sum[r]);
    if constexpr (Config::warps > 1) {
      if (lane == 0) {
#pragma unroll
        for (int r = 0; r < Config::rows; ++r) staging.sums[r][threadIdx.x / 32] = sum[r];
      }
      __syncthreads();
#pragma unroll
      for (int r = 0; r < Config::rows; ++r)
        sum[r] = sum_over_warp(lane < Config::warps ? staging.sums[r][lane] : 0.0);
    }
#pragma unroll
    for (int r = 0; r < Config::rows; ++r) sum[r] = 1.0 / sqrt(sum[r] / static_cast<double>(p.n) + p.eps);
  }

  static __device__ __forceinline__ double sum_over_warp(double value) {
#pragma unroll
    for (u32 mask = 1; mask < 32; mask *= 2) value += ptx::shfl_xor(value, mask);
    return value;
  }

  /// `count` units of x as they are stored, as load_units has them.
  template <class Config, int count>
  static __device__ __forceinline__ void load_stored_units(const Params& p, const Team<Config>& team,
                                                           i64 element, StoredUnit<Config> (&to)[count]) {
    using T = Team<Config>;
#pragma unroll
    for (int i = 0; i < count; ++i) {
      const i64 row = team.row + i / (count / Config::rows);
      const i64 at = element + i64{i % (count / Config::rows) * T::threads} * T::unit;
      load_stored<Config>(p.x, row * p.ld_x + at, row < p.m ? p.n - at : 0, (p.wide & wide_x) != 0, to[i]);
    }
  }

  /// Those units after RMSNorm.
  template <class Config, int count>
  static __device__ __forceinline__ void normalize_units(const Params& p, const Team<Config>& team,
                                                         i64 element, const double (&inverse)[Config::rows],
                                                         const StoredUnit<Config> (&stored)[count],
                                                         typename Team<Config>::Unit (&to)[count]) {
    using T = Team<Config>;
    const bool wide = reinterpret_cast<u64>(p.weight) % 16 == 0;
#pragma unroll
    for (int u = 0; u < count / Config::rows; ++u) {
      const i64 at = element + i64{u * T::threads} * T::unit, left = p.n - at;
      StoredUnit<Config> weight;
      load_stored<Config>(p.weight, at, left, wide, weight);
#pragma unroll
      for (int r = 0; r < Config::rows; ++r) {
        const int i = r * (count / Config::rows) + u;
        const int columns = team.row + r >= p.m || left <= 0 ? 0 : left < 8 ? static_cast<int>(left) : 8;
        normalize<Config>(stored[i], weight, inverse[r], columns, to[i]);
      }
    }
  }

  template <class Config>
  static __device__ __forceinline__ float finish(const Params& p, i64 row, int thread, u32 amax) {
    const float factor = factor_of<Config::format, Config::rounding>(amax, p.amax_cap);
    if (thread == 0 && row < p.m)
      ptx::st_global(static_cast<float*>(p.s_row) + row, __float_as_uint(scale_of(factor)));
    return factor;
  }

  template <class Config>
  static __device__ __forceinline__ void quantize(const Params& p, RowsStaging<Config>& staging) {
    using T = Team<Config>;
    using N = Pairs<Config::input>;
    const T team;
    u32 amax[Config::rows];
    if constexpr (Config::held) {
      typename T::Unit x[Config::rows * Config::units];
      const i64 first = i64{team.thread} * T::unit;
      if constexpr (Config::pre == Pre::rmsnorm) {
        StoredUnit<Config> stored[Config::rows * Config::units];
        load_stored_units<Config>(p, team, first, stored);
        double inverse[Config::rows];
#pragma unroll
        for (int r = 0; r < Config::rows; ++r) {
          inverse[r] = 0;
#pragma unroll
          for (int u = 0; u < Config::units; ++u)
            inverse[r] += sum_of_squares<Config>(stored[r * Config::units + u]);
        }
        invert<Config>(p, staging, inverse);
        normalize_units<Config>(p, team, first, inverse, stored, x);
      } else {
        load_units<Config>(p, team, first, x);
      }
#pragma unroll
      for (int r = 0; r < Config::rows; ++r) {
        typename N::Pair most = x[r * Config::units][0];
#pragma unroll
        for (int u = 0; u < Config::units; ++u)
#pragma unroll
          for (int i = 0; i < T::pairs; ++i) most = N::max_abs(most, x[r * Config::units + u][i]);
        amax[r] = largest_of<N>(most);
      }
      over_team<Config>(staging, amax);
#pragma unroll
      for (int r = 0; r < Config::rows; ++r) {
        const float factor = finish<Config>(p, team.row + r, team.thread, amax[r]);
#pragma unroll
        for (int u = 0; u < Config::units; ++u)
          store<Config>(p, team.row + r, i64{team.thread + u * T::threads} * T::unit,
                        x[r * Config::units + u], factor);
      }
    } else {
      static_assert(Config::rows == 1, "long rows");
      constexpr int together = 4;
      constexpr i64 step = T::threads * T::unit;
      typename T::Unit x[together];
      typename N::Pair most = {};
      double inverse[1] = {0};
      if constexpr (Config::pre == Pre::rmsnorm) {
#pragma unroll 1
        for (i64 at = team.thread * T::unit; at < p.n; at += together * step) {
          StoredUnit<Config> stored[together];
          load_stored_units<Config>(p, team, at, stored);
#pragma unroll
          for (int u = 0; u < together; ++u) inverse[0] += sum_of_squares<Config>(stored[u]);
        }
        invert<Config>(p, staging, inverse);
      }
      const auto load_again = [&](i64 at) {
        if constexpr (Config::pre == Pre::rmsnorm) {
          StoredUnit<Config> stored[together];
          load_stored_units<Config>(p, team, at, stored);
          normalize_units<Config>(p, team, at, inverse, stored, x);
        } else {
          load_units<Config>(p, team, at, x);
        }
      };
#pragma unroll 1
      for (i64 at = team.thread * T::unit; at < p.n; at += together * step) {
        load_again(at);
#pragma unroll
        for (int u = 0; u < together; ++u)
#pragma unroll
          for (int i = 0; i < T::pairs; ++i) most = N::max_abs(most, x[u][i]);
      }
      amax[0] = largest_of<N>(most);
      over_team<Config>(staging, amax);
      const float factor = finish<Config>(p, team.row, team.thread, amax[0]);
#pragma unroll 1
      for (i64 at = team.thread * T::unit; at < p.n; at += together * step) {
        load_again(at);
#pragma unroll
        for (int u = 0; u < together; ++u) store<Config>(p, team.row, at + u * step, x[u], factor);
      }
    }
  }
};

}  // namespace mxjit
