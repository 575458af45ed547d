// A hash of plain words, for tables that are looked at in every call.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace mxjit {

template <std::size_t count>
constexpr std::uint64_t hash_words(const std::array<std::uint64_t, count>& words) noexcept {
  std::uint64_t state = 0x9E3779B97F4A7C15U;
  for (const std::uint64_t word : words) {
    state = (state ^ word) * 0xD6E8FEB86659FD93U;
    state ^= state >> 32;
  }
  return state;
}

}  // namespace mxjit
