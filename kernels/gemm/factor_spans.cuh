// Where decode factors lie.
#pragma once

namespace mxjit {

/// Nowhere (no factor), one for all, one a row of the operand, one a 1 x 128 block (plain: row-major;
/// mn_major: transposed), one a 128 x 128 block.
enum class FactorSpan { none, tensor, row, block_plain, block_mn_major, tile };

__device__ constexpr bool is_block(FactorSpan span) {
  return span == FactorSpan::block_plain || span == FactorSpan::block_mn_major || span == FactorSpan::tile;
}

template <class Config>
inline constexpr bool has_block_factors = is_block(Config::a_span) || is_block(Config::b_span);

}  // namespace mxjit
