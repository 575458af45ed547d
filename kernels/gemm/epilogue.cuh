// From accumulators to the output: row and column factors, alpha, beta, bias, SwiGLU, amax, scales of blocks,
// one rounding, the store.
#pragma once

#include "gemm/amax.cuh"
#include "gemm/elements.cuh"
#include "gemm/factor_spans.cuh"
#include "gemm/params.cuh"
#include "gemm/requant.cuh"
#include "gemm/swiglu.cuh"
#include "gemm/tile_factors.cuh"
#include "ptx/registers.cuh"
#include "ptx/shared.cuh"
#include "ptx/tma.cuh"
#include "ptx/wgmma.cuh"

namespace mxjit {

enum class Accumulation { fast, promote };

__device__ constexpr ptx::WgmmaTypes wgmma_types(Element a, Element b) {
  if (a == Element::e4m3) return b == Element::e4m3 ? ptx::WgmmaTypes::e4m3_e4m3 : ptx::WgmmaTypes::e4m3_e5m2;
  return b == Element::e4m3 ? ptx::WgmmaTypes::e5m2_e4m3 : ptx::WgmmaTypes::e5m2_e5m2;
}

// Adds beta * C and the bias to values of the thread's rows from `column` on; returns the bits of the largest
// magnitude inside D, for amax. Every thread reads its own elements of C before they are stored: C may be D.
template <class Config, int count>
__device__ __forceinline__ u32 add_rows(const GemmArguments& g, float (&values)[count], i32 row, i32 column) {
  u32 largest = 0;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    if (row + half * 8 >= g.m) continue;
    const i64 c_row = (row + half * 8) * g.ld_c + column;
#pragma unroll
    for (int j = 0; j < count / 4; ++j) {
#pragma unroll
      for (int side = 0; side < 2; ++side) {
        if (column + j * 8 + side >= g.n) continue;
        float& value = values[j * 4 + half * 2 + side];
        if constexpr (Config::beta) value += g.beta * load_element<Config::output>(g.c, c_row + j * 8 + side);
        if constexpr (Config::bias != Element::none)
          value += load_element<Config::bias>(g.bias, column + j * 8 + side);
        if constexpr (Config::amax) largest = magnitude(value) > largest ? magnitude(value) : largest;
      }
      if (j % 4 == 3) ptx::compiler_barrier();  // a few loads at a time: registers are scarce here
    }
  }
  return largest;
}

// What divides by the scales of the thread's two rows of D.
__device__ __forceinline__ float2 d_factors(const GemmOutput& output, i32 row, i32 rows) {
  const auto factor = [&](i32 r) {
    return r < rows ? __frcp_rn(__ldg(output.d_scale + r * output.d_scale_stride)) : 0.0f;
  };
  return {factor(row), factor(row + 8)};
}

// Where 16 rows of D lie that a warp has the sums of, and what it does to them.
template <class Config>
class RowsOfD {
 public:
  // Of a box of 16 rows, and of the products that it is made of.
  static constexpr int columns = DenseFp8Shared<Config>::out_columns;
  static constexpr int product_columns = gated<Config> ? columns * 2 : columns;
  // Boxes whose columns one scale serves.
  static constexpr int at_once = Config::requant == Requant::fp32 ? 128 / columns : 1;
  // Of three warpgroups, each has no registers for what two boxes need at a time.
  static constexpr bool fetch_early = Config::warpgroups < 3;

  /// `boxes`: the warp's out_boxes boxes in shared memory; `factors`: from the first row's and product
  /// column's on.
  __device__ __forceinline__ RowsOfD(const ptx::TensorMap& map, const GemmArguments& g, unsigned char* boxes,
                                     const FactorsOfTile& factors, i32 first_row, i32 first_column, int lane)
      : map_(map),
        g_(g),
        lane_(ptx::computed_here(lane)),
        boxes_(boxes),
        column_factors_(factors.columns + lane % 4 * 2),
        columns_(gated<Config> ? g.n / 2 : g.n),
        first_row_(first_row),
        first_column_(gated<Config> ? first_column / 2 : first_column),
        row_(first_row + lane / 4),
        a_{g.alpha * factors.one, g.alpha * factors.one} {
    if constexpr (Config::a_span == FactorSpan::row) {
      a_[0] *= factors.rows[lane / 4];
      a_[1] *= factors.rows[lane / 4 + 8];
    }
    if constexpr (by_scale) d_ = d_factors(g.output, row_, g.m);
    if constexpr (fetch_early) fetch(0);
  }

  /// Asks for the column factors of a box, which take their time while shared memory is busy.
  __device__ __forceinline__ void fetch(int box) {
    if constexpr (Config::b_span == FactorSpan::row) {
#pragma unroll
      for (int i = 0; i < product_columns / 8; ++i)
        b_[i] = *reinterpret_cast<const float2*>(column_factors_ + box * product_columns + i * 8);
    }
  }

  /// What the sums of the box that was fetched become, unrounded. The sums stay: more products may follow in
  /// their registers.
  __device__ __forceinline__ void finish(int box, const float* sum, float (&values)[columns / 2]) {
    if constexpr (!fetch_early) fetch(box);
    if constexpr (gated<Config>) {
      join_gates(box, sum, values);
    } else {
#pragma unroll
      for (int i = 0; i < columns / 2; ++i) values[i] = scaled(box, sum, i);
      if constexpr (Config::beta || Config::bias != Element::none || Config::amax) {
        const u32 here = add_rows<Config>(g_, values, row_, column(box));
        largest_ = here > largest_ ? here : largest_;
      }
    }
    if constexpr (by_scale) {
#pragma unroll
      for (int i = 0; i < columns / 2; ++i) values[i] *= i / 2 % 2 == 0 ? d_.x : d_.y;
    }
  }

  /// Divides boxes by the scales of their blocks, which it stores.
  __device__ __forceinline__ void requantize(int box, float (&values)[at_once][columns / 2]) const {
    requant().run(values, first_column_ + box * columns);
  }

  /// What belongs to no block, when all of `boxes` boxes are stored.
  __device__ __forceinline__ void clear_padding(int boxes) const {
    requant().clear_padding(first_column_, boxes * columns);
  }

  /// Two values a word.
  static __device__ __forceinline__ void pack(const float (&values)[columns / 2], u32 (&words)[columns / 4]) {
#pragma unroll
    for (int i = 0; i < columns / 4; ++i) {
      if constexpr (Config::output == Element::e4m3) {
        words[i] = ptx::cvt_e4m3x4(values[2 * i], values[2 * i + 1], 0.0f, 0.0f);
      } else {
        words[i] = pack_pair<Config::output>(values[2 * i], values[2 * i + 1]);
      }
    }
  }

  /// Box after box of those that `last` ends goes to shared memory, and then, out_boxes at a time, by the
  /// copy engine to D. A warp hands over its 16 rows by itself.
  __device__ __forceinline__ void store_box(int box, bool last, const u32 (&words)[columns / 4]) const {
    const int place = box % Config::out_boxes;
    if (place == 0) {
      if (lane_ == 0) ptx::tma_store_wait_read<0>();
      __syncwarp();
    }
    stage(boxes_ + place * box_bytes, words);
    if (!last && place + 1 < Config::out_boxes) return;
    ptx::tma_store_fence();
    __syncwarp();
    if (lane_ == 0) {
#pragma unroll
      for (int i = 0; i <= place; ++i)
        ptx::tma_store_2d(&map_, boxes_ + i * box_bytes, first_column_ + (box - place + i) * columns,
                          first_row_);
      ptx::tma_store_commit();
    }
  }

  /// As store_box, without the copy engine.
  __device__ __forceinline__ void store_values(int box, const float (&values)[columns / 2]) const {
#pragma unroll
    for (int i = 0; i < columns / 2; ++i) {
      const i32 r = row_ + i / 2 % 2 * 8;
      const i32 c = column(box) + i / 4 * 8 + i % 2;
      if (r < g_.m && c < columns_) store_element<Config::output>(g_.d, r * g_.ld_d + c, values[i]);
    }
  }

  __device__ __forceinline__ void raise_amax() const {
    if constexpr (Config::amax) mxjit::raise_amax(g_.output.amax, largest_);
  }

 private:
  static constexpr int box_bytes = 16 * columns * 2;
  // e4m3 by scales that the caller gives.
  static constexpr bool by_scale = Config::output == Element::e4m3 && Config::requant == Requant::none;

  __device__ __forceinline__ RequantRows<Config> requant() const { return {g_, columns_, first_row_, lane_}; }

  // One of the box's sums, times its factors.
  __device__ __forceinline__ float scaled(int box, const float* sum, int i) const {
    float value = sum[box * (product_columns / 2) + i];
    if constexpr (Config::b_span == FactorSpan::row) value *= i % 2 == 0 ? b_[i / 4].x : b_[i / 4].y;
    return value * a_[i / 2 % 2];
  }

  // SwiGLU of a box: eight gates are followed by their ups.
  __device__ __forceinline__ void join_gates(int box, const float* sum, float (&values)[columns / 2]) {
    static_assert(!Config::beta);
#pragma unroll
    for (int i = 0; i < columns / 2; i += 4) {
      const i32 first = column(box) + i * 2;
      const float2 of_gates = bias(first, 0), of_ups = bias(first, 1);
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const float gate = scaled(box, sum, i * 2 + e) + (e % 2 == 0 ? of_gates.x : of_gates.y),
                    up = scaled(box, sum, i * 2 + 4 + e) + (e % 2 == 0 ? of_ups.x : of_ups.y);
        values[i + e] = swiglu(g_.output, gate, up);
        if constexpr (Config::amax) {
          const bool inside = row_ + e / 2 * 8 < g_.m && first + e % 2 < columns_;
          const u32 here = inside ? magnitude(values[i + e]) : 0;
          largest_ = here > largest_ ? here : largest_;
        }
      }
    }
  }

  // The bias of the gates, or of the ups, of two columns of D.
  __device__ __forceinline__ float2 bias(i32 first, int side) const {
    if constexpr (Config::bias == Element::none) return {-0.0f, -0.0f};  // changes nothing
    const auto of = [&](i32 c) {
      return c < columns_
                 ? load_element<Config::bias>(g_.bias, source_column<halves<Config>>(c * 2 + side, g_.n))
                 : 0.0f;
    };
    return {of(first), of(first + 1)};
  }

  // The thread's first column in a box.
  __device__ __forceinline__ i32 column(int box) const {
    return first_column_ + box * columns + lane_ % 4 * 2;
  }

  // One box into shared memory, in the swizzle of its row's bytes.
  __device__ __forceinline__ void stage(unsigned char* to, const u32 (&words)[columns / 4]) const {
    if constexpr (Config::output == Element::e4m3) {
#pragma unroll
      for (int i = 0; i < columns / 4; ++i) {
        const int r = lane_ / 4 + i % 2 * 8;
        const int chunk = i / 4 ^ (columns == 64 ? r / 2 % 4 : r / 4 % 2);
        *reinterpret_cast<u16*>(to + r * columns + chunk * 16 + i / 2 % 2 * 8 + lane_ % 4 * 2) =
            static_cast<u16>(words[i]);
      }
    } else {
      const int r = lane_ % 16;
      const int swizzle = columns == 64 ? r % 8 : r / 2 % 4;
#pragma unroll
      for (int i = 0; i < columns / 4; i += 4) {
        const int chunk = (i / 2 + lane_ / 16) ^ swizzle;
        ptx::stmatrix_x4(ptx::shared_address(to) + r * (columns * 2) + chunk * 16, words[i], words[i + 1],
                         words[i + 2], words[i + 3]);
      }
    }
  }

  const ptx::TensorMap& map_;
  const GemmArguments& g_;
  int lane_;
  unsigned char* boxes_;
  const float* column_factors_;
  i32 columns_;  // of D
  i32 first_row_, first_column_, row_;
  float a_[2];
  float2 b_[product_columns / 8];
  float2 d_;
  u32 largest_ = 0;
};

// Sums become D's, a box at a time, or as many as share scales.
template <class Config, int count>
__device__ __forceinline__ void store(RowsOfD<Config> rows, const float (&sum)[count]) {
  using Rows = RowsOfD<Config>;
  constexpr int columns = Rows::columns, boxes = count * 2 / Rows::product_columns, at_once = Rows::at_once;
  static_assert(boxes * Rows::product_columns == count * 2 && boxes % at_once == 0);
#pragma unroll
  for (int first = 0; first < boxes; first += at_once) {
    float values[at_once][columns / 2];
#pragma unroll
    for (int i = 0; i < at_once; ++i) {
      rows.finish(first + i, sum, values[i]);
      if (Rows::fetch_early && first + i + 1 < boxes) rows.fetch(first + i + 1);
    }
    if constexpr (Config::requant != Requant::none) rows.requantize(first, values);
#pragma unroll
    for (int i = 0; i < at_once; ++i) {
      if constexpr (Config::tma_store) {
        u32 words[columns / 4];
        rows.pack(values[i], words);
        rows.store_box(first + i, first + i + 1 == boxes, words);
      } else {
        rows.store_values(first + i, values[i]);
      }
    }
  }
  if constexpr (Config::requant != Requant::none) rows.clear_padding(boxes);
  rows.raise_amax();
}

}  // namespace mxjit
