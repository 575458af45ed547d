// What selects a plan among the quantize calls: options, extents and alignments, as plain words.
#pragma once

#include <array>
#include <bit>
#include <compare>
#include <cstdint>

#include "base/word_hash.hpp"
#include "mxjit/quantize.hpp"
#include "problem/problem.hpp"

namespace mxjit::dispatch {

inline bool is_swiglu(Pre pre) noexcept { return pre == Pre::swiglu || pre == Pre::swiglu_interleaved; }

/// No padding: every byte is a field, so keys compare and hash as words. Pitches, alignments and the number
/// of experts are values of a launch: they select no kernel.
struct QuantizeKey {
  std::uint8_t format = 0, scaling = 0, block_kind = 0, rounding = 0, scale_layout = 0, axes = 0, input = 0,
               rank = 0;  // axes: all that is one bit, and pre
  std::int32_t block_rows = 0, block_cols = 0;
  std::int32_t groups = 0;  // holds counts up to this power of two
  std::int32_t group_alignment = 0;
  std::int64_t n = 0;         // of x
  std::int64_t m_bucket = 0;  // holds 2^(m_bucket - 1) < M <= 2^m_bucket

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
  std::uint64_t hash() const noexcept { return hash_words(words()); }
};
static_assert(sizeof(QuantizeKey) == sizeof(QuantizeKey::Words));

/// The key of a call whose arguments passed check_quantize.
inline QuantizeKey quantize_key(const QuantizeOptions& options, const QuantizeArgs& args) noexcept {
  QuantizeKey key;
  key.format = static_cast<std::uint8_t>(options.format);
  key.scaling = static_cast<std::uint8_t>(options.scaling);
  key.block_kind = static_cast<std::uint8_t>(options.block.kind);
  key.rounding = static_cast<std::uint8_t>(options.rounding);
  key.scale_layout = static_cast<std::uint8_t>(options.scale_layout);
  key.axes = static_cast<std::uint8_t>((options.axes.row ? 1 : 0) | (options.axes.col ? 2 : 0) |
                                       (options.transposed_input ? 4 : 0) | (options.emit_high ? 8 : 0) |
                                       static_cast<int>(options.pre) << 4 |
                                       (is_swiglu(options.pre) && args.swiglu_limit ? 64 : 0));
  key.input = static_cast<std::uint8_t>(args.x.dtype);
  key.rank = static_cast<std::uint8_t>(args.x.rank);
  key.block_rows = options.block.rows;
  key.block_cols = options.block.cols;
  if (options.groups.count > 0) {
    key.groups = static_cast<std::int32_t>(std::bit_ceil(static_cast<std::uint32_t>(options.groups.count)));
    key.group_alignment = options.groups.alignment;
  }
  const std::size_t last = static_cast<std::size_t>(args.x.rank) - 1;
  const std::int64_t m = args.x.shape[options.transposed_input ? last : last - 1];
  key.n = args.x.shape[options.transposed_input ? last - 1 : last];
  key.m_bucket = m < 2 ? 0 : static_cast<std::int64_t>(std::bit_width(static_cast<std::uint64_t>(m - 1)));
  return key;
}

/// The problem that every call of `key` is planned as: of the bucket's largest M, and of one expert where
/// there are several. A plan depends on its key alone.
problem::Problem quantize_problem(const QuantizeKey& key);

}  // namespace mxjit::dispatch
