// From accumulators to the output: 128-block scales at promotion, row and column factors, alpha, beta, bias,
// amax, one rounding, the store.
#pragma once

#include "gemm/amax.cuh"
#include "gemm/elements.cuh"
#include "gemm/params.cuh"
#include "ptx/registers.cuh"
#include "ptx/shared.cuh"
#include "ptx/tma.cuh"
#include "ptx/wgmma.cuh"

namespace mxjit {

enum class Accumulation { fast, promote };
// Where a decode factor lies: nowhere (no factor), one for all, one a row of the operand, one a 1 x 128 block
// (plain: row-major; mn_major: transposed), one a 128 x 128 block.
enum class FactorSpan { none, tensor, row, block_plain, block_mn_major, tile };

__device__ constexpr ptx::WgmmaTypes wgmma_types(Element a, Element b) {
  if (a == Element::e4m3) return b == Element::e4m3 ? ptx::WgmmaTypes::e4m3_e4m3 : ptx::WgmmaTypes::e4m3_e5m2;
  return b == Element::e4m3 ? ptx::WgmmaTypes::e5m2_e4m3 : ptx::WgmmaTypes::e5m2_e5m2;
}

__device__ constexpr bool is_block(FactorSpan span) {
  return span == FactorSpan::block_plain || span == FactorSpan::block_mn_major || span == FactorSpan::tile;
}

// The factors of one K block for the two rows (and, for 1 x 128 blocks of B, the columns) that a thread
// accumulates.
template <class Config>
struct BlockScales {
  static constexpr bool scaled = is_block(Config::a_span) || is_block(Config::b_span);
  // A part of the columns lies inside one 128-block of B.
  static_assert(Config::b_span != FactorSpan::tile || 128 % (Config::block_n / Config::parts) == 0);

  __device__ BlockScales(const GemmArguments& g, i32 tile_row, i32 tile_column, int lane) {
    if constexpr (is_block(Config::a_span)) {
      a_step_ = Config::a_span == FactorSpan::block_mn_major ? g.ld_a_scale : 1;
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        i32 row = tile_row + lane / 32 * 16 + lane % 32 / 4 + r * 8;
        row = row < g.m ? row : g.m - 1;
        if constexpr (Config::a_span == FactorSpan::block_mn_major) {
          a_[r] = g.a_scale + row;
        } else {
          a_[r] = g.a_scale +
                  static_cast<i64>(Config::a_span == FactorSpan::tile ? row / 128 : row) * g.ld_a_scale;
        }
      }
    }
    if constexpr (Config::b_span == FactorSpan::tile) {
#pragma unroll
      for (int part = 0; part < Config::parts; ++part) {
        i32 column = tile_column + part * (Config::block_n / Config::parts);
        column = column < g.n ? column : g.n - 1;
        b_[part] = g.b_scale + static_cast<i64>(column / 128) * g.ld_b_scale;
      }
    }
#pragma unroll
    for (int part = 0; part < Config::parts; ++part) next_b_[part] = 1.0f;
    fetch();
  }

  // Makes the factors of block `kb` current and asks for those of the block after it: a load has a whole
  // block's time to arrive.
  __device__ void advance(int kb, int k_blocks) {
    if constexpr (scaled) {
#pragma unroll
      for (int part = 0; part < Config::parts; ++part)
#pragma unroll
        for (int r = 0; r < 2; ++r) factor_[part][r] = next_a_[r] * next_b_[part];
      if (kb + 1 < k_blocks) {
        if constexpr (is_block(Config::a_span))
#pragma unroll
          for (int r = 0; r < 2; ++r) a_[r] += a_step_;
        if constexpr (Config::b_span == FactorSpan::tile)
#pragma unroll
          for (int part = 0; part < Config::parts; ++part) ++b_[part];
      }
      fetch();
    }
  }

  template <int part, int count, int total>
  __device__ void promote(float (&sum)[total], const float (&partial)[count]) const {
#pragma unroll
    for (int i = 0; i < count; ++i) {
      if constexpr (scaled) {
        sum[part * count + i] += factor_[part][i / 2 % 2] * partial[i];
      } else {
        sum[part * count + i] += partial[i];
      }
    }
  }

 private:
  __device__ void fetch() {
    if constexpr (is_block(Config::a_span))
#pragma unroll
      for (int r = 0; r < 2; ++r) next_a_[r] = __ldg(a_[r]);
    if constexpr (Config::b_span == FactorSpan::tile)
#pragma unroll
      for (int part = 0; part < Config::parts; ++part) next_b_[part] = __ldg(b_[part]);
  }

  const float* a_[2];
  const float* b_[Config::parts];
  i32 a_step_ = 0;
  float next_a_[2] = {1.0f, 1.0f};
  float next_b_[Config::parts];
  float factor_[Config::parts][2];
};

// The factors of a tile's columns: fetched while the tile is computed, handed round through shared memory.
template <class Config>
struct ColumnFactors {
  static constexpr int each = (Config::block_n + 127) / 128;  // a thread
  float value[each];

  __device__ ColumnFactors(const GemmArguments& g, i32 column, int lane) {
    if constexpr (Config::b_span == FactorSpan::row) {
#pragma unroll
      for (int i = 0; i < each; ++i) {
        const i32 c = column + lane + i * 128;
        value[i] = c < g.n ? __ldg(g.b_scale + c) : 0.0f;
      }
    }
  }
  __device__ void publish(float* factors, int lane) const {
    if constexpr (Config::b_span == FactorSpan::row) {
#pragma unroll
      for (int i = 0; i < each; ++i)
        if (lane + i * 128 < Config::block_n) factors[lane + i * 128] = value[i];
    }
  }
};

template <class Config>
struct EpilogueBuffers {
  unsigned char* memory;  // out_boxes boxes of 64 x 64 16-bit elements, 128-byte swizzled
  int next;
  float* factors;  // one a column of the tile
};

// Barrier of one warpgroup; 0 belongs to the block.
__device__ __forceinline__ void warpgroup_sync(int group) { ptx::bar_sync<128>(group + 1); }

// Adds beta * C and the bias; returns the bits of the largest magnitude inside D, for amax. Every thread
// reads its own elements of C before any of them is stored: C may be D.
template <class Config, int registers>
__device__ __forceinline__ u32 add_rows(const GemmArguments& g, float (&sum)[registers], i32 row,
                                        i32 column) {
  u32 largest = 0;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    if (row + half * 8 >= g.m) continue;
    const i64 c_row = (row + half * 8) * g.ld_c + column;
#pragma unroll
    for (int j = 0; j < registers / 4; ++j) {
#pragma unroll
      for (int side = 0; side < 2; ++side) {
        if (column + j * 8 + side >= g.n) continue;
        float& value = sum[j * 4 + half * 2 + side];
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

// The e4m3 bytes of one box of `columns`, 64 or 32: a swizzle of as many bytes.
template <int columns>
__device__ __forceinline__ void stage_bytes(unsigned char* to, const float* sum, float2 factors, int lane) {
#pragma unroll
  for (int j = 0; j < columns / 8; ++j)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int r = lane / 32 * 16 + lane % 32 / 4 + half * 8;
      const int chunk = j / 2 ^ (columns == 64 ? r / 2 % 4 : r / 4 % 2);
      const float* const pair = sum + j * 4 + half * 2;
      const float factor = half == 0 ? factors.x : factors.y;
      *reinterpret_cast<u16*>(to + r * columns + chunk * 16 + j % 2 * 8 + lane % 4 * 2) =
          static_cast<u16>(ptx::cvt_e4m3x4(pair[0] * factor, pair[1] * factor, 0.0f, 0.0f));
    }
}

template <class Config, int registers>
__device__ void store_tile(const ptx::TensorMap& map, const GemmArguments& g, float (&sum)[registers],
                           i32 tile_row, i32 tile_column, int lane, int group,
                           EpilogueBuffers<Config>& buffers) {
  const int warp = lane / 32;
  const i32 row = tile_row + warp * 16 + lane % 32 / 4;
  const i32 column = tile_column + lane % 4 * 2;

  float a[2] = {g.alpha, g.alpha};
  if constexpr (Config::a_span == FactorSpan::tensor) {
    a[0] *= __ldg(g.a_scale);
    a[1] = a[0];
  } else if constexpr (Config::a_span == FactorSpan::row) {
    a[0] *= row < g.m ? __ldg(g.a_scale + row) : 0.0f;
    a[1] *= row + 8 < g.m ? __ldg(g.a_scale + row + 8) : 0.0f;
  }
  float b_one = 1.0f;
  if constexpr (Config::b_span == FactorSpan::tensor) b_one = __ldg(g.b_scale);

  if constexpr (Config::b_span == FactorSpan::row) warpgroup_sync(group);
#pragma unroll
  for (int j = 0; j < registers / 4; ++j) {
    float2 b{b_one, b_one};
    if constexpr (Config::b_span == FactorSpan::row)
      b = *reinterpret_cast<const float2*>(buffers.factors + lane % 4 * 2 + j * 8);
    sum[j * 4 + 0] = sum[j * 4 + 0] * b.x * a[0];
    sum[j * 4 + 1] = sum[j * 4 + 1] * b.y * a[0];
    sum[j * 4 + 2] = sum[j * 4 + 2] * b.x * a[1];
    sum[j * 4 + 3] = sum[j * 4 + 3] * b.y * a[1];
  }
  if constexpr (Config::beta || Config::bias != Element::none || Config::amax) {
    const u32 largest = add_rows<Config>(g, sum, row, column);
    if constexpr (Config::amax) raise_amax(g.output.amax, largest);
  }
  float2 factors{1.0f, 1.0f};
  if constexpr (Config::output == Element::e4m3) factors = d_factors(g.output, row, g.m);

  if constexpr (Config::tma_store) {
    constexpr int columns = dense_fp8_out_columns(Config::block_n);
#pragma unroll
    for (int box = 0; box < Config::block_n / columns; ++box) {
      unsigned char* const to = buffers.memory + buffers.next * (64 * columns * 2);
      if (lane == 0)
        ptx::tma_store_wait_read<Config::out_boxes - 1>();  // the box that used this buffer has left
      warpgroup_sync(group);
      if constexpr (Config::output == Element::e4m3) {
        stage_bytes<columns>(to, sum + box * (columns / 2), factors, lane);
      } else {
#pragma unroll
        for (int j = 0; j < columns / 8; j += 2) {
          const int r = warp * 16 + lane % 16;
          const int swizzle = columns == 64 ? r % 8 : r / 2 % 4;
          const int chunk = (j + lane % 32 / 16) ^ swizzle;
          const float* s = sum + box * (columns / 2) + j * 4;
          ptx::stmatrix_x4(ptx::shared_address(to) + r * (columns * 2) + chunk * 16,
                           pack_pair<Config::output>(s[0], s[1]), pack_pair<Config::output>(s[2], s[3]),
                           pack_pair<Config::output>(s[4], s[5]), pack_pair<Config::output>(s[6], s[7]));
        }
      }
      ptx::tma_store_fence();
      warpgroup_sync(group);
      if (lane == 0) {
        ptx::tma_store_2d(&map, to, tile_column + box * columns, tile_row);
        ptx::tma_store_commit();
      }
      buffers.next = buffers.next + 1 == Config::out_boxes ? 0 : buffers.next + 1;
    }
  } else {
#pragma unroll
    for (int i = 0; i < registers; ++i) {
      const i32 r = row + i / 2 % 2 * 8;
      const i32 c = column + i / 4 * 8 + i % 2;
      if (r >= g.m || c >= g.n) continue;
      if constexpr (Config::output == Element::e4m3) sum[i] *= i / 2 % 2 == 0 ? factors.x : factors.y;
      store_element<Config::output>(g.d, r * g.ld_d + c, sum[i]);
    }
  }
}

}  // namespace mxjit
