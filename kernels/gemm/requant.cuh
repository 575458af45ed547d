// D in e4m3 with a scale a block of its columns: from fp32 values to bytes and scales.
#pragma once

#include "gemm/amax.cuh"
#include "gemm/params.cuh"
#include "ptx/arithmetic.cuh"
#include "ptx/convert.cuh"
#include "quantize/factors.cuh"
#include "quantize/mx_numbers.cuh"

namespace mxjit {

/// What a scale of D is: an E8M0 code a 32 columns, an fp32 factor a 128.
enum class Requant { none, mx, fp32 };

/// The scales of one matrix of D, m x n.
template <class Config>
class ScalesOfD {
 public:
  static constexpr bool mx = Config::requant == Requant::mx;
  static constexpr int block = mx ? 32 : 128;  // columns

  __device__ __forceinline__ ScalesOfD(const GemmOutput& output, i64 m, i64 n, i64 batch)
      : output_(output), m_(m), columns_((n + block - 1) / block), base_(batch * output.scale_batch_stride) {}

  /// What a block's values are multiplied by, from the bits of their largest magnitude. One thread of the
  /// block, `stores`, stores its scale.
  __device__ __forceinline__ float factor(u32 amax, i64 row, i64 at, bool stores) const {
    float factor;
    if constexpr (mx) {
      u32 code;
      scale_of_f32<Input::fp32, Format::e4m3, Config::requant_rounding>(amax, code, factor);
      if (stores) codes()[place(row, at)] = static_cast<u8>(code);
    } else {
      factor = factor_of<Format::e4m3, Config::requant_rounding>(amax, output_.amax_cap);
      if (stores) factors()[place(row, at)] = scale_of(factor);
    }
    return factor;
  }

  /// What lies between the scales and the layout's extents is zero: its owners are those of the last rows and
  /// of the last blocks. By `threads` threads, for `rows` rows and `blocks` blocks.
  __device__ __forceinline__ void clear_padding(i64 first_row, int rows, i64 first_block, int blocks,
                                                int thread, int threads) const {
    constexpr bool blocked = Config::requant_layout == ScaleLayout::blocked;
    constexpr i64 row_unit = blocked ? 128 : Config::requant_layout == ScaleLayout::mn_major ? 4 : 1;
    constexpr i64 column_unit = blocked ? 4 : 1;
    if constexpr (row_unit == 1 && column_unit == 1) return;
    const bool last_rows = first_row + rows >= m_, last_blocks = first_block + blocks >= columns_;
    const i64 end_row = last_rows ? (m_ + row_unit - 1) / row_unit * row_unit : first_row + rows;
    const i64 end_block =
        last_blocks ? (columns_ + column_unit - 1) / column_unit * column_unit : first_block + blocks;
    for (i64 row = first_row + thread; row < end_row; row += threads)
      for (i64 at = row < m_ ? columns_ : first_block; at < end_block; ++at) {
        if constexpr (mx) {
          codes()[place(row, at)] = 0;
        } else {
          factors()[place(row, at)] = 0.0f;
        }
      }
  }

 private:
  __device__ __forceinline__ u8* codes() const { return static_cast<u8*>(output_.d_scales); }
  __device__ __forceinline__ float* factors() const { return static_cast<float*>(output_.d_scales); }

  __device__ __forceinline__ i64 place(i64 row, i64 at) const {
    if constexpr (Config::requant_layout == ScaleLayout::blocked)
      return base_ + (row / 128 * ((columns_ + 3) / 4) + at / 4) * 512 + row % 32 * 16 + row / 32 % 4 * 4 +
             at % 4;
    return base_ + row * output_.scale_row_stride + at * output_.scale_block_stride;
  }

  const GemmOutput& output_;
  i64 m_, columns_, base_;  // columns_: of scales
};

/// The general kernel: the values of `general_tile` x `columns` of one matrix of D, from shared memory; the
/// tile, which starts at `first_row`, `first_column`, is whole blocks wide. A warp takes a row.
template <class Config, int columns>
class RequantTile {
 public:
  using Scales = ScalesOfD<Config>;
  static constexpr int block = Scales::block, each = block / 32, blocks = columns / block;

  __device__ RequantTile(const GemmGeneralParams& p, i64 n, i64 batch, i64 first_row, i64 first_column)
      : p_(p),
        scales_(p.output, p.m, n, batch),
        n_(n),
        batch_(batch),
        first_row_(first_row),
        first_column_(first_column) {}

  __device__ void run(const float* values) const {
    const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
    for (int row = warp; row < general_tile && first_row_ + row < p_.m; row += general_threads / 32)
      for (int b = 0; b < blocks && first_column_ + b * block < n_; ++b)
        quantize_block(values + row * columns + b * block, first_row_ + row, first_column_ + b * block, lane);
    scales_.clear_padding(first_row_, general_tile, first_column_ / block, blocks, thread, general_threads);
  }

 private:
  __device__ __forceinline__ void quantize_block(const float* values, i64 row, i64 column, int lane) const {
    float value[each];
    u32 amax = 0;
#pragma unroll
    for (int i = 0; i < each; ++i) {
      value[i] = column + lane + i * 32 < n_ ? values[lane + i * 32] : 0.0f;
      amax = magnitude(value[i]) > amax ? magnitude(value[i]) : amax;
    }
    const float factor = scales_.factor(warp_amax(amax), row, column / block, lane == 0);
    u8* const to = static_cast<u8*>(p_.d) + batch_ * p_.batch_d + row * p_.ld_d + column + lane;
#pragma unroll
    for (int i = 0; i < each; ++i)
      if (column + lane + i * 32 < n_)
        to[i * 32] = static_cast<u8>(ptx::cvt_e4m3x4(value[i] * factor, 0.0f, 0.0f, 0.0f));
  }

  const GemmGeneralParams& p_;
  ScalesOfD<Config> scales_;
  i64 n_, batch_, first_row_, first_column_;
};

/// The Hopper kernel: 16 rows of D, which a warp has in registers as wgmma leaves them: of every eight
/// columns a thread has lane % 4 * 2 + {0, 1}, of rows lane / 4 + {0, 8}.
template <class Config>
class RequantRows {
 public:
  using Scales = ScalesOfD<Config>;
  static constexpr int block = Scales::block;

  __device__ __forceinline__ RequantRows(const GemmArguments& g, i32 n, i32 first_row, int lane)
      : scales_(g.output, g.m, n, 0), m_(g.m), n_(n), first_row_(first_row), lane_(lane) {}

  /// Multiplies values of whole blocks, from `column` on, by what their scales make of them, and stores
  /// those. Eight columns after eight, and row after row of them.
  template <int boxes, int count>
  __device__ __forceinline__ void run(float (&values)[boxes][count], i32 column) const {
    constexpr int of_block = block / 2;  // a thread's
    static_assert(boxes * count % of_block == 0);
#pragma unroll
    for (int first = 0; first < boxes * count; first += of_block) {
      u32 amax[2] = {0, 0};
#pragma unroll
      for (int i = first; i < first + of_block; ++i) {
        const bool inside = column + i / 4 * 8 + i % 2 + lane_ % 4 * 2 < n_;
        u32& of_row = amax[i / 2 % 2];
        of_row = ptx::max_abs_f32(of_row, inside ? __float_as_uint(values[i / count][i % count]) : 0);
      }
      const i32 at = (column + first * 2) / block;
      float factor[2];
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        amax[r] = ptx::max_abs_f32(amax[r], ptx::shfl_xor(amax[r], 1));
        amax[r] = ptx::max_abs_f32(amax[r], ptx::shfl_xor(amax[r], 2));
        const i32 row = first_row_ + lane_ / 4 + r * 8;
        factor[r] = scales_.factor(amax[r], row, at, lane_ % 4 == 0 && row < m_ && at * block < n_);
      }
#pragma unroll
      for (int i = first; i < first + of_block; ++i) values[i / count][i % count] *= factor[i / 2 % 2];
    }
  }

  /// For as many columns from `first_column` on.
  __device__ __forceinline__ void clear_padding(i32 first_column, int columns) const {
    if (first_row_ < m_ && first_column < n_)
      scales_.clear_padding(first_row_, 16, first_column / block, columns / block, lane_, 32);
  }

 private:
  ScalesOfD<Config> scales_;
  i32 m_, n_, first_row_;
  int lane_;
};

}  // namespace mxjit
