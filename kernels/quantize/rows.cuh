// Quantization of a matrix along its rows, reading it once: with a float scale a row or, after RMSNorm, with
// scales of blocks, too.
//
// A team of warps holds `rows` rows in registers: a warp, where a row is short enough, else the thread block.
// Rows that are longer than registers hold are read again, from the cache: for their bytes, and before that
// for whatever spans them, their squares and then their largest magnitude.
#pragma once

#include "quantize/conditional.cuh"
#include "quantize/groups.cuh"
#include "quantize/norm_rows.cuh"
#include "quantize/panel.cuh"
#include "quantize/params.cuh"
#include "quantize/row_scales.cuh"
#include "quantize/row_team.cuh"
#include "quantize/tile_grid.cuh"
#include "quantize/values.cuh"

namespace mxjit {

template <class Config>
struct RowsStaging {
  typename If<Config::pre == Pre::rmsnorm, NormRowsStaging<Config>>::type norm;
  typename If<Config::span == Span::row, RowScaleStaging<Config>>::type scales;
  typename If<(Config::group_alignment > 0), GroupTable<Config::max_groups>>::type groups;
};

struct QuantizeRows {
  using Params = QuantizeParams;

  template <class Config>
  static __device__ __forceinline__ void run(const Params& p) {
    __shared__ RowsStaging<Config> staging;
    if constexpr (Config::group_alignment > 0) {
      if (blockIdx.x == 0 && threadIdx.x < 32) {
        read_groups<Config::group_alignment, 128>(p, p.m, true, staging.groups);
      }
    }
    if constexpr (Config::batched) {
      quantize<Config>(expert<Config>(p, i64{p.first_expert} + blockIdx.y), staging);
    } else {
      quantize<Config>(p, staging);
    }
  }

 private:
  /// The parameters of one expert, where its scales are padded.
  template <class Config>
  static __device__ __forceinline__ Params expert(const Params& params, i64 index) {
    Params p = expert_data<Config>(params, index);
    const i64 blocks = (p.n + Config::block_columns - 1) / Config::block_columns;
    const i64 bytes = Config::scale_layout == ScaleLayout::blocked
                          ? (p.m + 127) / 128 * ((blocks + 3) / 4) * 512
                          : blocks * p.ld_s_row * static_cast<i64>(sizeof(float));
    p.s_row = static_cast<u8*>(p.s_row) + index * bytes;
    return p;
  }

  /// Units of x, or of what SwiGLU makes of it.
  template <class Config, class Units>
  static __device__ __forceinline__ void load_units(const Params& p, const Units& units,
                                                    typename Units::Values& to) {
    constexpr int unit = RowTeam<Config>::unit, count = Units::count;
    const auto from = [&](int i) {
      const i64 at = units.row(i) * p.ld_x + units.element_of(i) * gate_step<Config>;
      return static_cast<const u8*>(p.x) + at * Pairs<Config::stored>::bytes;
    };
    const auto columns_of = [&](int i) {
      const int columns = units.columns_of(i);
      return columns < 0 ? 0 : columns < unit ? columns : unit;
    };
    if constexpr (Config::pre == Pre::none) {
#pragma unroll
      for (int i = 0; i < count; ++i) {
        if ((p.wide & wide_x) != 0 && columns_of(i) == unit) {
          load_lane_row(from(i), to[i]);
        } else {
          load_lane_row(from(i), columns_of(i), to[i]);
        }
      }
    } else {
      u32 some = 0, whole = 0;
#pragma unroll
      for (int i = 0; i < count; ++i) {
        if (columns_of(i) > 0) some |= 1u << i;
        if (columns_of(i) == unit && (p.wide & wide_x) != 0) whole |= 1u << i;
      }
      const auto source = swiglu_source<Config>(p.swiglu, from, columns_of);
      PiecesInRegisters<decltype(source)> pieces;
      start_pieces<count>(source, pieces, whole);
      compute_pieces(source, pieces, whole, some, to);
    }
  }

  /// Units of x after what comes before quantization; `inverse`: inverse_root's, before RMSNorm.
  template <class Config, class Units>
  static __device__ __forceinline__ void load(const Params& p, const Units& units, double inverse,
                                              typename Units::Values& to) {
    if constexpr (Config::pre == Pre::rmsnorm) {
      StoredUnit<Config> stored[Units::count], weights[Units::per_row];
      load_stored_units<Config>(p, units, stored);
      load_weights<Config>(p, units, weights);
      normalize_units<Config>(p, units, inverse, stored, weights, to);
    } else {
      load_units<Config>(p, units, to);
    }
  }

  template <class Config>
  static __device__ __forceinline__ void quantize(const Params& p, RowsStaging<Config>& staging) {
    if constexpr (Config::held) {
      hold<Config>(p, staging);
    } else {
      read_again<Config>(p, staging);
    }
  }

  template <class Config>
  static __device__ __forceinline__ void hold(const Params& p, RowsStaging<Config>& staging) {
    using Units = RowUnits<Config, Config::units>;
    const RowTeam<Config> team;
    const Units units(p, team, 0);
    typename Units::Values x;
    if constexpr (Config::pre == Pre::rmsnorm) {
      StoredUnit<Config> stored[Units::count], weights[Units::per_row];
      load_stored_units<Config>(p, units, stored);
      load_weights<Config>(p, units, weights);
      double sums[Config::rows] = {};
      add_squares<Config, Units>(stored, sums);
      const double inverse = inverse_root<Config>(p, staging.norm, sums);
      normalize_units<Config>(p, units, inverse, stored, weights, x);
    } else {
      load_units<Config>(p, units, x);
    }
    store_high<Config>(p, units, x);
    if constexpr (Config::span == Span::row) {
      typename RowTeam<Config>::N::Pair most[Config::rows] = {};
      see_maxima<Config, Units>(x, most);
      float factors[Config::rows];
      row_factors<Config>(p, team, staging.scales, most, factors);
      store_rows<Config>(p, units, factors, x);
    } else {
      store_blocks<Config>(p, units, x);
    }
  }

  template <class Config>
  static __device__ __forceinline__ void read_again(const Params& p, RowsStaging<Config>& staging) {
    static_assert(Config::rows == 1, "long rows");
    using Units = RowUnits<Config, 4>;
    const RowTeam<Config> team;
    // Calls visit(units) for all of the row.
    const auto all_units = [&](const auto& visit) {
#pragma unroll 1
      for (i64 at = 0; at < p.n; at += Units::count * RowTeam<Config>::threads * RowTeam<Config>::unit)
        visit(Units(p, team, at));
    };
    double inverse = 0;
    if constexpr (Config::pre == Pre::rmsnorm) {
      double sums[1] = {};
      all_units([&](const Units& units) {
        StoredUnit<Config> stored[Units::count];
        load_stored_units<Config>(p, units, stored);
        add_squares<Config, Units>(stored, sums);
      });
      inverse = inverse_root<Config>(p, staging.norm, sums);
    }
    if constexpr (Config::span == Span::row) {
      typename RowTeam<Config>::N::Pair most[1] = {};
      all_units([&](const Units& units) {
        typename Units::Values x;
        load<Config>(p, units, inverse, x);
        see_maxima<Config, Units>(x, most);
      });
      float factors[1];
      row_factors<Config>(p, team, staging.scales, most, factors);
      all_units([&](const Units& units) {
        typename Units::Values x;
        load<Config>(p, units, inverse, x);
        store_high<Config>(p, units, x);
        store_rows<Config>(p, units, factors, x);
      });
    } else {
      all_units([&](const Units& units) {
        typename Units::Values x;
        load<Config>(p, units, inverse, x);
        store_high<Config>(p, units, x);
        store_blocks<Config>(p, units, x);
      });
    }
  }
};

}  // namespace mxjit
