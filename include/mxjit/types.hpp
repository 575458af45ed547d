// Element types and the vocabulary of quantization recipes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "mxjit/export.h"

namespace mxjit {

enum class DType : std::uint8_t {
  bf16,
  fp16,
  fp32,
  fp64,
  e4m3,  ///< FP8 E4M3FN: finite up to 448, one NaN per sign, no infinity
  e5m2,
  e8m0,  ///< scale code: 2^(code - 127), 255 is NaN
  u8,
  i8,
  u16,
  i16,
  u32,
  i32,
  u64,
  i64,
  boolean,
};

/// Bytes of one element.
MXJIT_API std::size_t size_of(DType dtype);
/// Lower-case name as problem files spell it ("bf16", "e4m3", "i32").
MXJIT_API std::string_view to_string(DType dtype);

/// A tensor in device memory (or, for the CPU reference, in host memory), row-major. The last extent is
/// contiguous; rows are `pitch` elements apart (0: packed); leading extents are packed over whole rows.
struct Tensor {
  void* data = nullptr;
  DType dtype = DType::bf16;
  int rank = 0;
  std::array<std::int64_t, 4> shape{};  ///< elements, outermost first; entries past `rank` are ignored
  std::int64_t pitch = 0;               ///< elements between consecutive rows; 0 means shape[rank - 1]
};

/// How a scale is stored: E8M0 codes ("mx") or fp32 factors.
enum class Scaling : std::uint8_t { mx, fp32 };
MXJIT_API std::string_view to_string(Scaling scaling);

/// Which scale is chosen for a block's largest magnitude. mx: rceil, floor, ceil, even. fp32: none, pow2.
enum class Rounding : std::uint8_t { rceil, floor, ceil, even, none, pow2 };
MXJIT_API std::string_view to_string(Rounding rounding);

enum class ScaleLayout : std::uint8_t {
  plain,    ///< one scale a block, row-major
  blocked,  ///< 128x4 tiles of 512 bytes, zero padded
  mn_major  ///< fp32 128-blocks: the transposed matrix, inner extent zero-padded to a multiple of 4
};
MXJIT_API std::string_view to_string(ScaleLayout layout);

/// Where blocked scale codes lie: one matrix; groups along its rows; groups along its columns; each expert by
/// itself.
enum class Placement : std::uint8_t { dense, m_groups, k_groups, per_expert };
MXJIT_API std::string_view to_string(Placement placement);

/// How a GEMM adds up. promote: FP8 tensor cores, fp32 outside them every 128 of K. fast: the FP8 tensor
/// cores' own accumulator, about 14 bits. exact: operands decoded to bf16, which is exact, and fp32.
enum class Accumulation : std::uint8_t { promote, fast, exact };
MXJIT_API std::string_view to_string(Accumulation accumulation);

/// The elements that share one scale, written as rows x cols along the scaled axis: mx 32 is {1, 32}. k, of
/// an operand of a GEMM: those of one contraction index; their products with the factor are rounded to fp32.
struct Block {
  enum class Kind : std::uint8_t { extents, row, tensor, k };
  Kind kind = Kind::extents;
  std::int32_t rows = 1;   ///< across the scaled axis
  std::int32_t cols = 32;  ///< along the scaled axis
  friend bool operator==(const Block&, const Block&) = default;
};

/// Which axes are quantized: row = blocks along the last axis, col = blocks along the axis before it.
struct Axes {
  bool row = true;
  bool col = false;
  friend bool operator==(const Axes&, const Axes&) = default;
};

}  // namespace mxjit
