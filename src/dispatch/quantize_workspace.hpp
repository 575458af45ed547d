// The workspace of a quantize call: words for what the first pass of a kernel finds and its second one uses.
#pragma once

#include <cstdint>

#include "mxjit/quantize.hpp"

namespace mxjit::dispatch {

/// Largest magnitudes of the rows and of the columns of the matrix in memory, sums of squares of what RMSNorm
/// normalizes, then how far the kernel has come in every strip of tiles; each part starts at a multiple of
/// 256 bytes. One scale for the tensor takes a word of the first for each tile, up to most_slots of them;
/// after RMSNorm one word.
struct QuantizeWorkspace {
  std::int64_t row_bytes = 0;
  std::int64_t col_bytes = 0;
  std::int64_t sum_bytes = 0;
  std::int64_t progress_bytes = 0;
  std::int64_t bytes() const { return row_bytes + col_bytes + sum_bytes + progress_bytes; }
};

/// For an input of rank 2 or 3 whose extents are at least 0. Throws Error(invalid_argument) naming x for a
/// size past 63 bits.
QuantizeWorkspace quantize_workspace(const QuantizeOptions& options, const Tensor& x);

}  // namespace mxjit::dispatch
