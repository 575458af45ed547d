// What selects a plan among the quantize calls: options, extents and alignments, as plain words.
#pragma once

#include <array>
#include <bit>
#include <compare>
#include <cstdint>

#include "mxjit/quantize.hpp"

namespace mxjit::dispatch {

/// No padding: every byte is a field, so keys compare and hash as words.
struct QuantizeKey {
  std::uint8_t format = 0, scaling = 0, block_kind = 0, rounding = 0, scale_layout = 0, axes = 0, input = 0,
               rank = 0;
  std::uint8_t align_x = 0, align_q_row = 0, align_s_row = 0, align_q_col = 0,
               align_s_col = 0;  // log2 of bytes, at most 4; 4 for absent tensors
  std::uint8_t m_bucket = 0;     // of 2^(m_bucket - 1) < M <= 2^m_bucket
  std::uint16_t zero = 0;
  std::int32_t block_rows = 0, block_cols = 0;
  std::int64_t n = 0;
  std::int64_t experts = 0;

  using Words = std::array<std::uint64_t, 5>;
  Words words() const noexcept { return std::bit_cast<Words>(*this); }
  friend bool operator==(const QuantizeKey& a, const QuantizeKey& b) noexcept {
    const Words x = a.words(), y = b.words();
    std::uint64_t differs = 0;
    for (std::size_t i = 0; i < x.size(); ++i) differs |= x[i] ^ y[i];
    return differs == 0;
  }
  friend std::strong_ordering operator<=>(const QuantizeKey& a, const QuantizeKey& b) noexcept {
    return a.words() <=> b.words();
  }
  std::uint64_t hash() const noexcept {
    std::uint64_t state = 0x9E3779B97F4A7C15U;
    for (const std::uint64_t word : words()) {
      state = (state ^ word) * 0xD6E8FEB86659FD93U;
      state ^= state >> 32;
    }
    return state;
  }
};
static_assert(sizeof(QuantizeKey) == sizeof(QuantizeKey::Words));

/// The key of a call whose arguments passed check_quantize.
QuantizeKey quantize_key(const QuantizeOptions& options, const QuantizeArgs& args) noexcept;

}  // namespace mxjit::dispatch
