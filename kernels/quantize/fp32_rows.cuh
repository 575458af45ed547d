// Quantization of a matrix with a float scale a row, reading it once.
//
// A team of warps holds `rows` rows in registers: a warp, where a row is short enough, else the thread block.
// Rows that are longer than registers hold are read twice, the second time from the cache.
#pragma once

#include "quantize/conditional.cuh"
#include "quantize/factors.cuh"
#include "quantize/groups.cuh"
#include "quantize/panel.cuh"
#include "quantize/params.cuh"

namespace mxjit {

template <class Config>
struct RowsStaging {
  static constexpr int warps = Config::threads / 32;
  u32 maxima[Config::rows][warps];
  typename If<(Config::group_alignment > 0), GroupTable<Config::max_groups>>::type groups;
};

struct QuantizeFp32Rows {
  using Params = QuantizeParams;

  template <class Config>
  static __device__ __forceinline__ void run(const Params& p) {
    __shared__ RowsStaging<Config> staging;
    if constexpr (Config::group_alignment > 0) {
      if (blockIdx.x == 0 && threadIdx.x < 32) {
        read_groups<Config::group_alignment, 128>(p, true, staging.groups);
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
      load_unit(from, to);
    } else {
      load_lane_row(from, left < 0 ? 0 : left < unit ? static_cast<int>(left) : unit, to);
    }
  }

  template <class Config>
  static __device__ __forceinline__ void store(const Params& p, i64 row, i64 element,
                                               const typename Team<Config>::Unit& x, float factor) {
    using N = Pairs<Config::input>;
    constexpr int unit = Team<Config>::unit;
    const i64 left = row < p.m ? p.n - element : 0;
    if (left <= 0) return;
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
      typename T::Unit x[Config::rows][Config::units];
#pragma unroll
      for (int r = 0; r < Config::rows; ++r)
#pragma unroll
        for (int u = 0; u < Config::units; ++u)
          load<Config>(p, team.row + r, i64{team.thread + u * T::threads} * T::unit, x[r][u]);
#pragma unroll
      for (int r = 0; r < Config::rows; ++r) {
        typename N::Pair most = x[r][0][0];
#pragma unroll
        for (int u = 0; u < Config::units; ++u)
#pragma unroll
          for (int i = 0; i < T::pairs; ++i) most = N::max_abs(most, x[r][u][i]);
        amax[r] = largest_of<N>(most);
      }
      over_team<Config>(staging, amax);
#pragma unroll
      for (int r = 0; r < Config::rows; ++r) {
        const float factor = finish<Config>(p, team.row + r, team.thread, amax[r]);
#pragma unroll
        for (int u = 0; u < Config::units; ++u)
          store<Config>(p, team.row + r, i64{team.thread + u * T::threads} * T::unit, x[r][u], factor);
      }
    } else {
      static_assert(Config::rows == 1, "long rows");
      typename N::Pair most = {};
#pragma unroll 4
      for (i64 at = team.thread * T::unit; at < p.n; at += T::threads * T::unit) {
        typename T::Unit x;
        load<Config>(p, team.row, at, x);
#pragma unroll
        for (int i = 0; i < T::pairs; ++i) most = N::max_abs(most, x[i]);
      }
      amax[0] = largest_of<N>(most);
      over_team<Config>(staging, amax);
      const float factor = finish<Config>(p, team.row, team.thread, amax[0]);
#pragma unroll 4
      for (i64 at = team.thread * T::unit; at < p.n; at += T::threads * T::unit) {
        typename T::Unit x;
        load<Config>(p, team.row, at, x);
        store<Config>(p, team.row, at, x, factor);
      }
    }
  }
};

}  // namespace mxjit
