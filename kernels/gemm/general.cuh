// GEMM that takes anything: any strides, alignment, types and scales, on every target.
//
// Operands are decoded to bf16, exactly, on their way to shared memory (MX codes are applied there); products
// run on mma.sync with fp32 accumulation and are added to an fp32 sum every 128 of K, where fp32 block
// factors are applied. Factors that are constant along K wait for the epilogue. Where each contraction index
// has a factor, operands are decoded to fp32 and multiplied without the tensor cores: three parts of bf16
// would hold such a value, but one that is zero makes NaN of an infinity. A block computes `passes` tiles of
// columns one after another where a scale of D spans more columns than a tile.
#pragma once

#include "gemm/elements.cuh"
#include "gemm/operand_tile.cuh"
#include "gemm/params.cuh"
#include "gemm/requant.cuh"
#include "gemm/swiglu.cuh"
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

// What a thread holds of a 64 x 64 tile: rows lane / 4 + {0, 8} and columns lane % 4 * 2 + {0, 1} of each of
// two by two instructions; a warp computes 32 x 16.
struct GeneralPlace {
  int lane, warp_row, warp_column;
  i64 row, column;  // the thread's first

  __device__ GeneralPlace(i64 first_row, i64 first_column) {
    const int warp = static_cast<int>(threadIdx.x) / 32;
    lane = static_cast<int>(threadIdx.x) % 32;
    warp_row = warp / 4 * 32;
    warp_column = warp % 4 * 16;
    row = first_row + warp_row + lane / 4;
    column = first_column + warp_column + lane % 4 * 2;
  }
  __device__ __forceinline__ i64 row_of(int i, int half) const { return row + i * 16 + half * 8; }
  __device__ __forceinline__ i64 column_of(int j, int side) const { return column + j * 8 + side; }
};

template <class Config>
struct GeneralStages {
  static constexpr bool wide = Config::a_scale == ScaleForm::k || Config::b_scale == ScaleForm::k;
  StagedTile<wide ? Element::fp32 : Element::bf16> a, b;
};

// Add a step's products to a thread's sums.
__device__ __forceinline__ void add_products(const GeneralPlace& at, const StagedTile<Element::bf16>& a,
                                             const StagedTile<Element::bf16>& b, float (&sum)[2][2][4]) {
#pragma unroll
  for (int k = 0; k < StagedTile<Element::bf16>::k_step; k += 16) {
    u32 a_fragment[2][4], b_fragment[2][2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
      for (int e = 0; e < 4; ++e)
        a_fragment[i][e] =
            a.pair(at.warp_row + i * 16 + at.lane / 4 + e % 2 * 8, k + at.lane % 4 * 2 + e / 2 * 8);
#pragma unroll
    for (int j = 0; j < 2; ++j)
#pragma unroll
      for (int e = 0; e < 2; ++e)
        b_fragment[j][e] = b.pair(at.warp_column + j * 8 + at.lane / 4, k + at.lane % 4 * 2 + e * 8);
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
      for (int j = 0; j < 2; ++j) ptx::mma_bf16(sum[i][j], a_fragment[i], b_fragment[j]);
  }
}

__device__ __forceinline__ void add_products(const GeneralPlace& at, const StagedTile<Element::fp32>& a,
                                             const StagedTile<Element::fp32>& b, float (&sum)[2][2][4]) {
#pragma unroll
  for (int k = 0; k < StagedTile<Element::fp32>::k_step; k += 4) {
    float4 of_a[4], of_b[4];
#pragma unroll
    for (int r = 0; r < 4; ++r) of_a[r] = a.four(at.warp_row + at.lane / 4 + r * 8, k);
#pragma unroll
    for (int c = 0; c < 4; ++c) of_b[c] = b.four(at.warp_column + c / 2 * 8 + at.lane % 4 * 2 + c % 2, k);
#pragma unroll
    for (int r = 0; r < 4; ++r)
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        float& value = sum[r / 2][c / 2][r % 2 * 2 + c % 2];
        value = __fmaf_rn(of_a[r].x, of_b[c].x, value);
        value = __fmaf_rn(of_a[r].y, of_b[c].y, value);
        value = __fmaf_rn(of_a[r].z, of_b[c].z, value);
        value = __fmaf_rn(of_a[r].w, of_b[c].w, value);
      }
  }
}

// Adds the tile's products, with what scales them block by block, to `sum`.
template <class Config>
__device__ __forceinline__ void multiply_tile(const GemmGeneralParams& p, i64 batch, i64 first_row,
                                              i64 first_column, GeneralStages<Config>& staged,
                                              float (&sum)[2][2][4]) {
  constexpr int k_step = decltype(staged.a)::k_step, promotion = 128;
  constexpr bool a_blocks = Config::a_scale == ScaleForm::block,
                 b_blocks = Config::b_scale == ScaleForm::block;
  OperandTile<Config::a, Config::a_mn_major, Config::a_scale, Config::a_scale_rows, Config::a_scale_cols,
              false, k_step>
      a(p.a, batch, first_row, p.m, p.k);
  OperandTile<Config::b, Config::b_mn_major, Config::b_scale, Config::b_scale_rows, Config::b_scale_cols,
              halves<Config>, k_step>
      b(p.b, batch, first_column, p.n, p.k);
  const GeneralPlace at(first_row, first_column);

  float partial[2][2][4] = {};
  const auto promote = [&](i64 block) {
    float a_factor[2][2], b_factor[2][2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
      for (int half = 0; half < 2; ++half)
        if constexpr (a_blocks)
          a_factor[i][half] = at.row_of(i, half) < p.m
                                  ? block_factor<Config::a_scale_rows>(p.a, batch, at.row_of(i, half), block)
                                  : 0.0f;
#pragma unroll
    for (int j = 0; j < 2; ++j)
#pragma unroll
      for (int side = 0; side < 2; ++side)
        if constexpr (b_blocks)
          b_factor[j][side] =
              at.column_of(j, side) < p.n
                  ? block_factor<Config::b_scale_rows>(
                        p.b, batch, source_column<halves<Config>>(at.column_of(j, side), p.n), block)
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
    a.stage(staged.a);
    b.stage(staged.b);
    __syncthreads();
    if (k + k_step < p.k) {
      a.fetch(k + k_step);
      b.fetch(k + k_step);
    }
    add_products(at, staged.a, staged.b, partial);
    __syncthreads();
    if ((k + k_step) % promotion == 0 || k + k_step >= p.k) promote(k / promotion);
  }
}

// D's values of a tile, from its sums: factors, alpha, beta * C, bias, SwiGLU. Calls emit(row, column of D,
// value) for those inside D.
template <class Config, class Emit>
__device__ __forceinline__ void finish_tile(const GemmGeneralParams& p, i64 batch, i64 first_row,
                                            i64 first_column, const float (&sum)[2][2][4], Emit&& emit) {
  const GeneralPlace at(first_row, first_column);
#pragma unroll
  for (int i = 0; i < 2; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const i64 r = at.row_of(i, half);
      if (r >= p.m) continue;
      const float a_factor = p.alpha * epilogue_factor<Config::a_scale>(p.a, batch, r);
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        float value[2];
#pragma unroll
        for (int side = 0; side < 2; ++side) {
          const i64 c = at.column_of(j, side);
          if (c >= p.n) continue;
          const i64 source = source_column<halves<Config>>(c, p.n);
          value[side] =
              sum[i][j][half * 2 + side] * epilogue_factor<Config::b_scale>(p.b, batch, source) * a_factor;
          if constexpr (Config::beta)
            value[side] += p.beta * load_element<Config::output>(p.c, batch * p.batch_c + r * p.ld_c + c);
          if constexpr (Config::bias != Element::none)
            value[side] += load_element<Config::bias>(p.bias, source);
          if constexpr (!gated<Config>) emit(r, c, value[side]);
        }
        // N is even: both are inside or none.
        if constexpr (gated<Config>)
          if (at.column_of(j, 0) < p.n) emit(r, at.column_of(j, 0) / 2, swiglu(p.output, value[0], value[1]));
      }
    }
}

template <class Config>
__device__ void GemmGeneral::run(const Params& p) {
  static_assert(Config::threads == general_threads);
  constexpr int tile = general_tile, passes = Config::passes;
  constexpr bool requant = Config::requant != Requant::none;
  constexpr int out_columns = tile * passes / (gated<Config> ? 2 : 1);
  __shared__ GeneralStages<Config> staged;
  __shared__ float values[requant ? tile * out_columns : 1];

  const u32 index = blockIdx.x % (p.tiles_m * p.tiles_n);
  const i64 batch = blockIdx.x / (p.tiles_m * p.tiles_n);
  const i64 first_row = i64{index % p.tiles_m} * tile, first_pass = i64{index / p.tiles_m} * passes;
  const i64 first_out = first_pass * tile / (gated<Config> ? 2 : 1);

  u32 largest = 0;
  const auto emit = [&](i64 row, i64 column, float value) {
    if constexpr (Config::amax) largest = magnitude(value) > largest ? magnitude(value) : largest;
    if constexpr (requant) {
      values[(row - first_row) * out_columns + column - first_out] = value;
    } else {
      if constexpr (Config::output == Element::e4m3)
        value *= __frcp_rn(p.output.d_scale[(batch * p.m + row) * p.output.d_scale_stride]);
      store_element<Config::output>(p.d, batch * p.batch_d + row * p.ld_d + column, value);
    }
  };
  for (int pass = 0; pass < passes && (first_pass + pass) * tile < p.n; ++pass) {
    const i64 first_column = (first_pass + pass) * tile;
    float sum[2][2][4] = {};
    multiply_tile<Config>(p, batch, first_row, first_column, staged, sum);
    finish_tile<Config>(p, batch, first_row, first_column, sum, emit);
  }
  if constexpr (Config::amax) raise_amax(p.output.amax, largest);
  if constexpr (requant) {
    __syncthreads();
    RequantTile<Config, out_columns>(p, gated<Config> ? p.n / 2 : p.n, batch, first_row, first_out)
        .run(values);
  }
}

}  // namespace mxjit
