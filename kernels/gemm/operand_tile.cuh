// One operand's way from memory, at any strides, to a tile of decoded values in shared memory.
#pragma once

#include "gemm/elements.cuh"
#include "gemm/params.cuh"
#include "gemm/swiglu.cuh"

namespace mxjit {

/// What scales an operand: nothing; one fp32 factor; one a row; one a contraction index; one a 128-block; one
/// E8M0 code a block, in a matrix or in 128 x 4 tiles.
enum class ScaleForm { none, tensor, row, k, block, codes, codes_blocked };

/// Decoded values of 64 rows, `k_step` along K: bf16, or fp32 where bf16 does not hold them. The padding
/// keeps eight rows in different banks.
template <Element type>
struct StagedTile;

template <>
struct StagedTile<Element::bf16> {
  static constexpr int k_step = 32, pitch = 40;
  alignas(16) u16 values[general_tile * pitch];

  __device__ __forceinline__ void put(int row, int k, float value) {
    values[row * pitch + k] = static_cast<u16>(pack_pair<Element::bf16>(value, 0.0f));
  }
  __device__ __forceinline__ u32 pair(int row, int k) const {
    return *reinterpret_cast<const u32*>(values + row * pitch + k);
  }
};

template <>
struct StagedTile<Element::fp32> {
  static constexpr int k_step = 16, pitch = 20;
  alignas(16) float values[general_tile * pitch];

  __device__ __forceinline__ void put(int row, int k, float value) { values[row * pitch + k] = value; }
  __device__ __forceinline__ float4 four(int row, int k) const {
    return *reinterpret_cast<const float4*>(values + row * pitch + k);
  }
};

__device__ __forceinline__ float widen_code(u32 code) {  // E8M0
  if (code == 0) return __uint_as_float(0x00400000);
  return __uint_as_float(code == 255 ? 0x7fc00000 : code << 23);
}

template <Element type>
__device__ __forceinline__ float widen_fp8(u16 value) {
  const u32 halves = type == Element::e4m3 ? ptx::cvt_f16x2_e4m3x2(value) : ptx::cvt_f16x2_e5m2x2(value);
  return widen_fp16(static_cast<u16>(halves));
}

/// A tile of 64 x k_step, shared among 256 threads, neighbouring ones along what memory holds contiguously:
/// K, or, mn_major, the rows. `halves`: the rows of the tile are source_column's.
template <Element type, bool mn_major, ScaleForm form, int block_rows, int block_cols, bool halves,
          int k_step>
class OperandTile {
 public:
  __device__ OperandTile(const GemmOperand& operand, i64 batch, i64 first_row, i64 rows, i64 k)
      : operand_(operand), first_row_(first_row), rows_(rows), k_(k) {
    data_ = static_cast<const u8*>(operand.data) + batch * operand.batch_stride * bytes;
    codes_ = static_cast<const u8*>(operand.scale) + (coded ? batch * operand.scale_batch_stride : 0);
    factors_ = static_cast<const float*>(operand.scale) + batch * operand.scale_batch_stride;
  }

  /// Asks for the tile at `k`. Elements outside the operand count as zero, whatever scales them.
  __device__ __forceinline__ void fetch(i64 k) {
#pragma unroll
    for (int i = 0; i < count; ++i) {
      const i64 place = first_row_ + row_of(i), at_k = k + k_of(i);
      raw_[i] = 0;
      code_[i] = 127;
      factor_[i] = 1.0f;
      if (place < rows_ && at_k < k_) {
        const i64 row = source_column<halves>(place, rows_);
        const i64 at = mn_major ? at_k * operand_.pitch + row : row * operand_.pitch + at_k;
        if constexpr (bytes == 1) {
          raw_[i] = data_[at];
        } else {
          raw_[i] = reinterpret_cast<const u16*>(data_)[at];
        }
        if constexpr (coded) code_[i] = codes_[code_at(row, at_k / block_cols)];
        if constexpr (form == ScaleForm::k) factor_[i] = factors_[at_k];
      }
    }
  }

  /// Decodes what fetch brought.
  template <class Tile>
  __device__ __forceinline__ void stage(Tile& tile) const {
#pragma unroll
    for (int i = 0; i < count; ++i) {
      float value;
      if constexpr (type == Element::bf16) {
        value = widen_bf16(raw_[i]);
      } else {
        value = widen_fp8<type>(raw_[i]);
      }
      if constexpr (coded) value *= widen_code(code_[i]);
      if constexpr (form == ScaleForm::k) value *= factor_[i];
      tile.put(row_of(i), k_of(i), value);
    }
  }

 private:
  static constexpr int count = general_tile * k_step / general_threads;
  static constexpr int k_run = k_step / 8;  // mn_major: what a warp takes
  static constexpr int bytes = type == Element::bf16 ? 2 : 1;
  static constexpr bool coded = form == ScaleForm::codes || form == ScaleForm::codes_blocked;

  __device__ __forceinline__ int row_of(int i) const {
    const int thread = static_cast<int>(threadIdx.x);
    return mn_major ? thread % 32 + i / k_run * 32 : (thread + i * general_threads) / k_step;
  }
  __device__ __forceinline__ int k_of(int i) const {
    const int thread = static_cast<int>(threadIdx.x);
    return mn_major ? thread / 32 * k_run + i % k_run : thread % k_step;
  }
  __device__ __forceinline__ i64 code_at(i64 row, i64 block) const {
    if constexpr (form == ScaleForm::codes_blocked) {
      // Tall blocks repeat their code over their rows.
      const i64 tiles = ((k_ + block_cols - 1) / block_cols + 3) / 4;
      return (row / 128 * tiles + block / 4) * 512 + row % 32 * 16 + row / 32 % 4 * 4 + block % 4;
    } else {
      return row / block_rows * operand_.scale_row_stride + block * operand_.scale_k_stride;
    }
  }

  const GemmOperand& operand_;
  const u8* data_;
  const u8* codes_;
  const float* factors_;
  i64 first_row_, rows_, k_;
  u16 raw_[count];
  u8 code_[count];
  float factor_[count];
};

}  // namespace mxjit
