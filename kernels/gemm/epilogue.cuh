// From accumulators to the output: row and column factors, alpha, beta, bias,
// amax, one rounding, the store.
#pragma once

#include "gemm/amax.cuh"
#include "gemm/elements.cuh"
#include "gemm/factor_spans.cuh"
#include "gemm/params.cuh"
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
  static constexpr int columns = dense_fp8_out_columns(Config::block_n);  // of a box of 16 rows
  // Of three warpgroups, each has no registers for what two boxes need at a time.
  static constexpr bool fetch_early = Config::warpgroups < 3;

  /// `boxes`: the warp's out_boxes boxes in shared memory; `factors`: from the first row's and column's on.
  __device__ __forceinline__ RowsOfD(const ptx::TensorMap& map, const GemmArguments& g, unsigned char* boxes,
                                     const FactorsOfTile& factors, i32 first_row, i32 first_column, int lane)
      : map_(map),
        g_(g),
        lane_(ptx::computed_here(lane)),
        boxes_(boxes),
        column_factors_(factors.columns + lane % 4 * 2),
        first_row_(first_row),
        first_column_(first_column),
        row_(first_row + lane / 4),
        a_{g.alpha * factors.one, g.alpha * factors.one} {
    if constexpr (Config::a_span == FactorSpan::row) {
      a_[0] *= factors.rows[lane / 4];
      a_[1] *= factors.rows[lane / 4 + 8];
    }
    if constexpr (Config::output == Element::e4m3) d_ = d_factors(g.output, row_, g.m);
    if constexpr (fetch_early) fetch(0);
  }

  /// Asks for the column factors of a box, which take their time while shared memory is busy.
  __device__ __forceinline__ void fetch(int box) {
    if constexpr (Config::b_span == FactorSpan::row) {
#pragma unroll
      for (int i = 0; i < columns / 8; ++i)
        b_[i] = *reinterpret_cast<const float2*>(column_factors_ + box * columns + i * 8);
    }
  }

  /// What the sums of the box that was fetched become, unrounded. The sums stay: more products may follow in
  /// their registers.
  __device__ __forceinline__ void finish(int box, const float* sum, float (&values)[columns / 2]) {
    if constexpr (!fetch_early) fetch(box);
#pragma unroll
    for (int i = 0; i < columns / 2; ++i) {
      float value = sum[box * (columns / 2) + i];
      if constexpr (Config::b_span == FactorSpan::row) {
        value *= i % 2 == 0 ? b_[i / 4].x : b_[i / 4].y;
      }
      values[i] = value * a_[i / 2 % 2];
    }
    if constexpr (Config::beta || Config::bias != Element::none || Config::amax) {
      const u32 here = add_rows<Config>(g_, values, row_, column(box));
      largest_ = here > largest_ ? here : largest_;
    }
    if constexpr (Config::output == Element::e4m3) {
#pragma unroll
      for (int i = 0; i < columns / 2; ++i) values[i] *= i / 2 % 2 == 0 ? d_.x : d_.y;
    }
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
      if (r < g_.m && c < g_.n) store_element<Config::output>(g_.d, r * g_.ld_d + c, values[i]);
    }
  }

  __device__ __forceinline__ void raise_amax() const {
    if constexpr (Config::amax) mxjit::raise_amax(g_.output.amax, largest_);
  }

 private:
  static constexpr int box_bytes = 16 * columns * 2;

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
  i32 first_row_, first_column_, row_;
  float a_[2];
  float2 b_[columns / 8];
  float2 d_;
  u32 largest_ = 0;
};

// Sums become D's, a box at a time.
template <class Config, int count>
__device__ __forceinline__ void store(RowsOfD<Config> rows, const float (&sum)[count]) {
  constexpr int columns = RowsOfD<Config>::columns, boxes = count * 2 / columns;
  static_assert(boxes * columns == count * 2);
#pragma unroll
  for (int box = 0; box < boxes; ++box) {
    float values[columns / 2];
    rows.finish(box, sum, values);
    if (RowsOfD<Config>::fetch_early && box + 1 < boxes) rows.fetch(box + 1);
    if constexpr (Config::tma_store) {
      u32 words[columns / 4];
      rows.pack(values, words);
      rows.store_box(box, box + 1 == boxes, words);
    } else {
      rows.store_values(box, values);
    }
  }
  rows.raise_amax();
}

}  // namespace mxjit
