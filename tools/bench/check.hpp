// Outputs of a timed quantization against the CPU reference, in blocks of rows.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "problem/problem.hpp"

namespace mxjit::bench {

/// Rows of a block: a row of blocked-scale tiles, and a multiple of every block extent.
inline constexpr std::int64_t check_rows = 128;

/// First rows of the blocks to check of `m` rows: all where they hold at most `budget` elements, otherwise
/// the first, the last and evenly spaced ones between. At least two where there are two.
std::vector<std::int64_t> blocks_to_check(std::int64_t m, std::int64_t n, std::int64_t budget);

/// True where a scale depends on rows everywhere: then the block to check is all rows.
bool spans_all_rows(const problem::Quantize& quantize);

/// Outputs by name (q_row, s_row, q_col, s_col), packed as problem::tensors says.
using HostOutputs = std::map<std::string, std::vector<std::uint8_t>>;

/// Compares `outputs` of the dense problem `quantize` (mn_major scales left out) with what the reference
/// makes of the rows at `blocks`; `read_rows(first, count)` gives the packed bytes of those rows of x. Runs
/// on all cores. Returns an empty string, or where the first difference is.
std::string difference_from_reference(
    const problem::Quantize& quantize, const HostOutputs& outputs, const std::vector<std::int64_t>& blocks,
    const std::function<std::vector<std::uint8_t>(std::int64_t first, std::int64_t count)>& read_rows);

}  // namespace mxjit::bench
