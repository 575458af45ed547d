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
  static constexpr int part_n = Config::block_n / Config::parts;
  // A part of the columns lies inside one 128-block of B.
  static_assert(Config::b_span != FactorSpan::tile || 128 % part_n == 0);

  /// Of the tile whose first block of K is `first`; every k_split-th follows.
  __device__ __forceinline__ void start(const GemmArguments& g, i32 tile_row, i32 tile_column, int lane,
                                        int first) {
    if constexpr (is_block(Config::a_span)) {
      const u32 step = Config::a_span == FactorSpan::block_mn_major ? static_cast<u32>(g.ld_a_scale) : 1;
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        i32 row = tile_row + lane / 32 * 16 + lane % 32 / 4 + r * 8;
        row = row < g.m ? row : g.m - 1;
        if constexpr (Config::a_span == FactorSpan::block_mn_major) {
          a_[r] = static_cast<u32>(row);
        } else {
          a_[r] = static_cast<u32>(Config::a_span == FactorSpan::tile ? row / 128 : row) *
                  static_cast<u32>(g.ld_a_scale);
        }
        a_[r] += static_cast<u32>(first) * step;
      }
      a_step_ = step * Config::k_split;
    }
    if constexpr (Config::b_span == FactorSpan::tile) {
#pragma unroll
      for (int part = 0; part < Config::parts; ++part) {
        i32 column = tile_column + part * part_n;
        column = column < g.n ? column : g.n - 1;
        b_[part] = static_cast<u32>(column / 128) * static_cast<u32>(g.ld_b_scale) + static_cast<u32>(first);
      }
    }
#pragma unroll
    for (int part = 0; part < Config::parts; ++part) next_b_[part] = 1.0f;
    fetch(g);
  }

  /// Makes the factors of the next block current and, if there is `more`, asks for those of the block after
  /// it: a load has a whole block's time to arrive.
  __device__ __forceinline__ void advance(const GemmArguments& g, bool more) {
    if constexpr (scaled) {
#pragma unroll
      for (int part = 0; part < Config::parts; ++part)
#pragma unroll
        for (int r = 0; r < 2; ++r) factor_[part][r] = next_a_[r] * next_b_[part];
      if (more) {
        if constexpr (is_block(Config::a_span))
#pragma unroll
          for (int r = 0; r < 2; ++r) a_[r] += a_step_;
        if constexpr (Config::b_span == FactorSpan::tile)
#pragma unroll
          for (int part = 0; part < Config::parts; ++part) b_[part] += Config::k_split;
      }
      fetch(g);
    }
  }

  template <int part, int count, int total>
  __device__ __forceinline__ void promote(float (&sum)[total], const float (&partial)[count]) const {
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
  __device__ __forceinline__ void fetch(const GemmArguments& g) {
    if constexpr (is_block(Config::a_span))
#pragma unroll
      for (int r = 0; r < 2; ++r) next_a_[r] = __ldg(g.a_scale + a_[r]);
    if constexpr (Config::b_span == FactorSpan::tile)
#pragma unroll
      for (int part = 0; part < Config::parts; ++part) next_b_[part] = __ldg(g.b_scale + b_[part]);
  }

  u32 a_[2], b_[Config::parts];  // places of the next factors: no more of them than a 128th of a GPU's bytes
  u32 a_step_ = 0;
  float next_a_[2] = {1.0f, 1.0f};
  float next_b_[Config::parts];
  float factor_[Config::parts][2];
};

// Columns 8 j + 2 q and the next, and those eight further, of which a thread has all: together, in pairs of
// j.
__device__ __forceinline__ int place_of(int column) {
  return column / 16 * 16 + column % 8 / 2 * 4 + column / 8 % 2 * 2 + column % 2;
}

// The factors of a tile's columns: fetched while the tile is computed, handed round through shared memory.
template <class Config>
struct ColumnFactors {
  static constexpr int each = (Config::block_n + 127) / 128;  // a thread
  float value[each];

  __device__ __forceinline__ void fetch(const GemmArguments& g, i32 column, int lane) {
    if constexpr (Config::b_span == FactorSpan::row) {
#pragma unroll
      for (int i = 0; i < each; ++i) {
        const i32 c = column + lane + i * 128;
        value[i] = c < g.n ? __ldg(g.b_scale + c) : 0.0f;
      }
    }
  }
  __device__ __forceinline__ void publish(float* factors, int lane) const {
    if constexpr (Config::b_span == FactorSpan::row) {
#pragma unroll
      for (int i = 0; i < each; ++i)
        if (lane + i * 128 < Config::block_n) factors[place_of(lane + i * 128)] = value[i];
    }
  }
};

// The factors of a thread's two rows, an operand's only one among them: fetched while the tile is computed.
template <class Config>
struct RowFactors {
  float value[2];

  __device__ __forceinline__ void fetch(const GemmArguments& g, i32 tile_row, int lane) {
    value[0] = value[1] = 1.0f;
    if constexpr (Config::a_span == FactorSpan::row) {
      const i32 row = tile_row + lane / 32 * 16 + lane % 32 / 4;
      value[0] = row < g.m ? __ldg(g.a_scale + row) : 0.0f;
      value[1] = row + 8 < g.m ? __ldg(g.a_scale + row + 8) : 0.0f;
    } else if constexpr (Config::a_span == FactorSpan::tensor) {
      value[0] = value[1] = __ldg(g.a_scale);
    }
    if constexpr (Config::b_span == FactorSpan::tensor) {
      const float b = __ldg(g.b_scale);
      value[0] *= b;
      value[1] *= b;
    }
  }
};

struct EpilogueBuffers {
  unsigned char* boxes;   // of each warp out_boxes boxes of 16 rows, swizzled
  float* column_factors;  // one a column of the tile
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
      const int r = lane / 4 + half * 8;
      const int chunk = j / 2 ^ (columns == 64 ? r / 2 % 4 : r / 4 % 2);
      const float* const pair = sum + j * 4 + half * 2;
      const float factor = half == 0 ? factors.x : factors.y;
      *reinterpret_cast<u16*>(to + r * columns + chunk * 16 + j % 2 * 8 + lane % 4 * 2) =
          static_cast<u16>(ptx::cvt_e4m3x4(pair[0] * factor, pair[1] * factor, 0.0f, 0.0f));
    }
}

template <class Config, int registers>
__device__ void store_tile(const ptx::TensorMap& map, const GemmArguments& g, float (&sum)[registers],
                           const RowFactors<Config>& row_factors, i32 tile_row, i32 tile_column, int lane,
                           int group, const EpilogueBuffers& buffers) {
  const int warp = lane / 32;
  const i32 row = tile_row + warp * 16 + lane % 32 / 4;
  const i32 column = tile_column + lane % 4 * 2;

  const float a[2] = {g.alpha * row_factors.value[0], g.alpha * row_factors.value[1]};

  if constexpr (Config::b_span == FactorSpan::row) warpgroup_sync(group);
  float4 b{1.0f, 1.0f, 1.0f, 1.0f};
#pragma unroll
  for (int j = 0; j < registers / 4; ++j) {
    if constexpr (Config::b_span == FactorSpan::row) {
      if (j % 2 == 0) b = *reinterpret_cast<const float4*>(buffers.column_factors + j * 8 + lane % 4 * 4);
      const float left = j % 2 == 0 ? b.x : b.z, right = j % 2 == 0 ? b.y : b.w;
      sum[j * 4 + 0] *= left;
      sum[j * 4 + 1] *= right;
      sum[j * 4 + 2] *= left;
      sum[j * 4 + 3] *= right;
    }
    sum[j * 4 + 0] *= a[0];
    sum[j * 4 + 1] *= a[0];
    sum[j * 4 + 2] *= a[1];
    sum[j * 4 + 3] *= a[1];
  }
  if constexpr (Config::beta || Config::bias != Element::none || Config::amax) {
    const u32 largest = add_rows<Config>(g, sum, row, column);
    if constexpr (Config::amax) raise_amax(g.output.amax, largest);
  }
  float2 factors{1.0f, 1.0f};
  if constexpr (Config::output == Element::e4m3) factors = d_factors(g.output, row, g.m);

  if constexpr (Config::tma_store) {
    // A warp hands its 16 rows to the copy engine by itself, box by box.
    constexpr int columns = dense_fp8_out_columns(Config::block_n);
    constexpr int boxes = Config::block_n / columns;
    constexpr int box_bytes = 16 * columns * 2;
    const int in_warp = ptx::computed_here(lane % 32);
    unsigned char* const mine = buffers.boxes + warp * (Config::out_boxes * box_bytes);
#pragma unroll
    for (int first = 0; first < boxes; first += Config::out_boxes) {
      if (in_warp == 0) ptx::tma_store_wait_read<0>();
      __syncwarp();
#pragma unroll
      for (int box = first; box < boxes && box < first + Config::out_boxes; ++box) {
        unsigned char* const to = mine + (box - first) * box_bytes;
        if constexpr (Config::output == Element::e4m3) {
          stage_bytes<columns>(to, sum + box * (columns / 2), factors, in_warp);
        } else {
#pragma unroll
          for (int j = 0; j < columns / 8; j += 2) {
            const int r = in_warp % 16;
            const int swizzle = columns == 64 ? r % 8 : r / 2 % 4;
            const int chunk = (j + in_warp / 16) ^ swizzle;
            const float* s = sum + box * (columns / 2) + j * 4;
            ptx::stmatrix_x4(ptx::shared_address(to) + r * (columns * 2) + chunk * 16,
                             pack_pair<Config::output>(s[0], s[1]), pack_pair<Config::output>(s[2], s[3]),
                             pack_pair<Config::output>(s[4], s[5]), pack_pair<Config::output>(s[6], s[7]));
          }
        }
      }
      ptx::tma_store_fence();
      __syncwarp();
      if (in_warp == 0) {
#pragma unroll
        for (int box = first; box < boxes && box < first + Config::out_boxes; ++box)
          ptx::tma_store_2d(&map, mine + (box - first) * box_bytes, tile_column + box * columns,
                            tile_row + warp * 16);
        ptx::tma_store_commit();
      }
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
