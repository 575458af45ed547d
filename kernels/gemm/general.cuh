// GEMM that takes anything: any strides, alignment, types and scales, on every target.
//
// Operands are decoded to bf16, exactly, on their way to shared memory (MX codes are applied there); products
// run on mma.sync with fp32 accumulation and are added to an fp32 sum every 128 of K, where fp32 block
// factors are applied. Factors that are constant along K wait for the epilogue.
#pragma once

#include "gemm/elements.cuh"
#include "gemm/operand_tile.cuh"
#include "gemm/params.cuh"
#include "ptx/mma.cuh"

namespace mxjit {

struct GemmGeneral {
  using Params = GemmGeneralParams;

  template <class Config>
  static __device__ void run(const Params& params);
};

// The factor of one row of an operand in the epilogue, or of its 128-block at `block` in a promotion.
template <ScaleForm form>
__device__ __forceinline__ float epilogue_factor(const GemmOperand& operand, i64 batch, i64 row) {
  if constexpr (form == ScaleForm::tensor) return *static_cast<const float*>(operand.scale);
  if constexpr (form == ScaleForm::row)
    return static_cast<const float*>(operand.scale)[batch * operand.scale_batch_stride + row];
  return 1.0f;
}

template <int block_rows>
__device__ __forceinline__ float block_factor(const GemmOperand& operand, i64 batch, i64 row, i64 block) {
  return static_cast<const float*>(
      operand.scale)[batch * operand.scale_batch_stride + row / block_rows * operand.scale_row_stride +
                     block * operand.scale_k_stride];
}

template <class Config>
__device__ void GemmGeneral::run(const Params& p) {
  static_assert(Config::threads == general_threads);
  constexpr int tile = general_tile, k_step = 32, promotion = 128;
  constexpr bool a_blocks = Config::a_scale == ScaleForm::block,
                 b_blocks = Config::b_scale == ScaleForm::block;
  __shared__ StagedTile staged_a, staged_b;

  const u32 index = blockIdx.x % (p.tiles_m * p.tiles_n);
  const i64 batch = blockIdx.x / (p.tiles_m * p.tiles_n);
  const i64 first_row = i64{index % p.tiles_m} * tile, first_column = i64{index / p.tiles_m} * tile;
  OperandTile<Config::a, Config::a_mn_major, Config::a_scale, Config::a_scale_rows, Config::a_scale_cols> a(
      p.a, batch, first_row, p.m, p.k);
  OperandTile<Config::b, Config::b_mn_major, Config::b_scale, Config::b_scale_rows, Config::b_scale_cols> b(
      p.b, batch, first_column, p.n, p.k);

  // A warp computes 32 x 16: two by two instructions. A thread holds rows lane / 4 + {0, 8} and columns
  // lane % 4 * 2 + {0, 1} of each.
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int warp_row = warp / 4 * 32, warp_column = warp % 4 * 16;
  const i64 row = first_row + warp_row + lane / 4, column = first_column + warp_column + lane % 4 * 2;
  const auto row_of = [&](int i, int half) { return row + i * 16 + half * 8; };
  const auto column_of = [&](int j, int side) { return column + j * 8 + side; };

  float sum[2][2][4] = {}, partial[2][2][4] = {};
  const auto promote = [&](i64 block) {
    float a_factor[2][2], b_factor[2][2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
      for (int half = 0; half < 2; ++half)
        if constexpr (a_blocks)
          a_factor[i][half] = row_of(i, half) < p.m
                                  ? block_factor<Config::a_scale_rows>(p.a, batch, row_of(i, half), block)
                                  : 0.0f;
#pragma unroll
    for (int j = 0; j < 2; ++j)
#pragma unroll
      for (int side = 0; side < 2; ++side)
        if constexpr (b_blocks)
          b_factor[j][side] = column_of(j, side) < p.n
                                  ? block_factor<Config::b_scale_rows>(p.b, batch, column_of(j, side), block)
                                  : 0.0f;
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
      for (int j = 0; j < 2; ++j)
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          float value = partial[i][j][e];
          if constexpr (b_blocks) value *= b_factor[j][e % 2];
          if constexpr (a_blocks) value *= a_factor[i][e / 2];
          sum[i][j][e] += value;
          partial[i][j][e] = 0.0f;
        }
  };

  if (p.k > 0) {
    a.fetch(0);
    b.fetch(0);
  }
  for (i64 k = 0; k < p.k; k += k_step) {
    a.stage(staged_a);
    b.stage(staged_b);
    __syncthreads();
    if (k + k_step < p.k) {
      a.fetch(k + k_step);
      b.fetch(k + k_step);
    }
#pragma unroll
    for (int kk = 0; kk < k_step / 16; ++kk) {
      u32 a_fragment[2][4], b_fragment[2][2];
#pragma unroll
      for (int i = 0; i < 2; ++i)
#pragma unroll
        for (int e = 0; e < 4; ++e)
          a_fragment[i][e] =
              staged_a.pair(warp_row + i * 16 + lane / 4 + e % 2 * 8, kk * 16 + lane % 4 * 2 + e / 2 * 8);
#pragma unroll
      for (int j = 0; j < 2; ++j)
#pragma unroll
        for (int e = 0; e < 2; ++e)
          b_fragment[j][e] = staged_b.pair(warp_column + j * 8 + lane / 4, kk * 16 + lane % 4 * 2 + e * 8);
#pragma unroll
      for (int i = 0; i < 2; ++i)
#pragma unroll
        for (int j = 0; j < 2; ++j) ptx::mma_bf16(partial[i][j], a_fragment[i], b_fragment[j]);
    }
    __syncthreads();
    if ((k + k_step) % promotion == 0 || k + k_step >= p.k) promote(k / promotion);
  }

  const i64 c_base = batch * p.batch_c, d_base = batch * p.batch_d;
#pragma unroll
  for (int i = 0; i < 2; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const i64 r = row_of(i, half);
      if (r >= p.m) continue;
      const float a_factor = p.alpha * epilogue_factor<Config::a_scale>(p.a, batch, r);
#pragma unroll
      for (int j = 0; j < 2; ++j)
#pragma unroll
        for (int side = 0; side < 2; ++side) {
          const i64 c = column_of(j, side);
          if (c >= p.n) continue;
          float value =
              sum[i][j][half * 2 + side] * epilogue_factor<Config::b_scale>(p.b, batch, c) * a_factor;
          if constexpr (Config::beta)
            value += p.beta * load_element<Config::output>(p.c, c_base + r * p.ld_c + c);
          if constexpr (Config::bias != Element::none) value += load_element<Config::bias>(p.bias, c);
          store_element<Config::output>(p.d, d_base + r * p.ld_d + c, value);
        }
    }
}

}  // namespace mxjit
