// Where the scale codes of a plain matrix lie in the blocked layout: 128x4 tiles of 512 bytes, and the four
// ways to place them. Everything that no code lands on is padding and zero.
#pragma once

#include <cstdint>
#include <span>

namespace mxjit::reference {

constexpr std::int64_t ceil_div(std::int64_t value, std::int64_t unit) { return (value + unit - 1) / unit; }
constexpr std::int64_t ceil_to(std::int64_t value, std::int64_t unit) { return ceil_div(value, unit) * unit; }

/// Bytes of one blocked matrix of `rows` x `cols` codes.
constexpr std::int64_t blocked_bytes(std::int64_t rows, std::int64_t cols) {
  return ceil_to(rows, 128) * ceil_to(cols, 4);
}

/// Byte of code (r, c) in a blocked matrix `cols` codes wide.
constexpr std::int64_t blocked_byte(std::int64_t r, std::int64_t c, std::int64_t cols) {
  const std::int64_t tile = r / 128 * ceil_div(cols, 4) + c / 4;
  return tile * 512 + r % 32 * 16 + r % 128 / 32 * 4 + c % 4;
}

/// One matrix (b.1). Calls visit(index in the plain matrix, byte) for every code.
template <typename Visit>
void place_dense(std::int64_t rows, std::int64_t cols, Visit visit) {
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < cols; ++c) visit(r * cols + c, blocked_byte(r, c, cols));
  }
}

/// Each expert by itself (b.5).
template <typename Visit>
void place_per_expert(std::int64_t experts, std::int64_t rows, std::int64_t cols, Visit visit) {
  for (std::int64_t e = 0; e < experts; ++e) {
    place_dense(rows, cols, [&](std::int64_t index, std::int64_t byte) {
      visit(e * rows * cols + index, e * blocked_bytes(rows, cols) + byte);
    });
  }
}

/// Groups of rows, each starting on a tile (b.3); `ends` are row numbers. Rows past the last end have no
/// place.
template <typename Visit>
void place_m_groups(std::span<const std::int64_t> ends, std::int64_t cols, Visit visit) {
  std::int64_t first = 0;
  std::int64_t base = 0;
  for (const std::int64_t end : ends) {
    place_dense(end - first, cols,
                [&](std::int64_t index, std::int64_t byte) { visit(first * cols + index, base + byte); });
    base += blocked_bytes(end - first, cols);
    first = end;
  }
}

/// Groups of columns, each a blocked matrix of its own width (b.4); `ends` are column numbers. Columns past
/// the last end have no place.
template <typename Visit>
void place_k_groups(std::span<const std::int64_t> ends, std::int64_t rows, std::int64_t cols, Visit visit) {
  std::int64_t first = 0;
  std::int64_t base = 0;
  for (const std::int64_t end : ends) {
    const std::int64_t width = end - first;
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t c = 0; c < width; ++c) visit(r * cols + first + c, base + blocked_byte(r, c, width));
    }
    base += blocked_bytes(rows, width);
    first = end;
  }
}

}  // namespace mxjit::reference
