// D in e4m3 with a scale a block of its columns: from a tile of fp32 values in shared memory to bytes and
// scales.
#pragma once

#include "gemm/amax.cuh"
#include "gemm/params.cuh"
#include "ptx/convert.cuh"
#include "quantize/factors.cuh"
#include "quantize/mx_numbers.cuh"

namespace mxjit {

/// What a scale of D is: an E8M0 code a 32 columns, an fp32 factor a 128.
enum class Requant { none, mx, fp32 };

/// The values of `tile_rows` x `columns` of one matrix of D, which starts at `first_row`, `first_column`; the
/// tile is whole blocks wide. A warp takes a row.
template <class Config, int columns>
class RequantTile {
 public:
  static constexpr bool mx = Config::requant == Requant::mx;
  static constexpr int block = mx ? 32 : 128, each = block / 32, blocks = columns / block;

  __device__ RequantTile(const GemmGeneralParams& p, i64 n, i64 batch, i64 first_row, i64 first_column)
      : p_(p), n_(n), batch_(batch), first_row_(first_row), first_column_(first_column) {
    scale_columns_ = (n + block - 1) / block;
  }

  __device__ void run(const float* values) const {
    const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
    for (int row = warp; row < general_tile && first_row_ + row < p_.m; row += general_threads / 32)
      for (int b = 0; b < blocks && first_column_ + b * block < n_; ++b)
        quantize_block(values + row * columns + b * block, first_row_ + row, first_column_ + b * block, lane);
    clear_padding();
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
    amax = warp_amax(amax);
    float factor;
    const i64 at = scale_at(row, column / block);
    if constexpr (mx) {
      u32 code;
      scale_of_f32<Input::fp32, Format::e4m3, Config::requant_rounding>(amax, code, factor);
      if (lane == 0) static_cast<u8*>(p_.output.d_scales)[at] = static_cast<u8>(code);
    } else {
      factor = factor_of<Format::e4m3, Config::requant_rounding>(amax, p_.output.amax_cap);
      if (lane == 0) static_cast<float*>(p_.output.d_scales)[at] = scale_of(factor);
    }
    u8* const to = static_cast<u8*>(p_.d) + batch_ * p_.batch_d + row * p_.ld_d + column + lane;
#pragma unroll
    for (int i = 0; i < each; ++i)
      if (column + lane + i * 32 < n_)
        to[i * 32] = static_cast<u8>(ptx::cvt_e4m3x4(value[i] * factor, 0.0f, 0.0f, 0.0f));
  }

  __device__ __forceinline__ i64 scale_at(i64 row, i64 at) const {
    const GemmOutput& o = p_.output;
    const i64 base = batch_ * o.scale_batch_stride;
    if constexpr (Config::requant_layout == ScaleLayout::blocked)
      return base + (row / 128 * ((scale_columns_ + 3) / 4) + at / 4) * 512 + row % 32 * 16 +
             row / 32 % 4 * 4 + at % 4;
    return base + row * o.scale_row_stride + at * o.scale_block_stride;
  }

  // The last tiles of rows and of columns also own what lies between the scales and the layout's extents.
  __device__ void clear_padding() const {
    constexpr bool blocked = Config::requant_layout == ScaleLayout::blocked;
    constexpr i64 row_unit = blocked ? 128 : Config::requant_layout == ScaleLayout::mn_major ? 4 : 1;
    constexpr i64 column_unit = blocked ? 4 : 1;
    const i64 first_block = first_column_ / block;
    const bool last_rows = first_row_ + general_tile >= p_.m,
               last_blocks = first_block + blocks >= scale_columns_;
    const i64 end_row = last_rows ? (p_.m + row_unit - 1) / row_unit * row_unit : first_row_ + general_tile;
    const i64 end_block =
        last_blocks ? (scale_columns_ + column_unit - 1) / column_unit * column_unit : first_block + blocks;
    const i64 width = end_block - first_block;
    for (i64 i = threadIdx.x; i < (end_row - first_row_) * width; i += general_threads) {
      const i64 row = first_row_ + i / width, at = first_block + i % width;
      if (row < p_.m && at < scale_columns_) continue;
      if constexpr (mx) {
        static_cast<u8*>(p_.output.d_scales)[scale_at(row, at)] = 0;
      } else {
        static_cast<float*>(p_.output.d_scales)[scale_at(row, at)] = 0.0f;
      }
    }
  }

  const GemmGeneralParams& p_;
  i64 n_, batch_, first_row_, first_column_, scale_columns_;
};

}  // namespace mxjit
