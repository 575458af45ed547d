// The tiles of the Hopper GEMM kernel and what each costs, measured on an H200 (tools/bench/README.md).
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "configure/gemm.hpp"

namespace mxjit::configure {

using enum GemmTile::Schedule;

// {m, n, parts, schedule, k_split, stages, out_boxes, ns of 128 of K, ns of a tile besides}
inline constexpr std::array<GemmTile, 11> fast_tiles = {{{128, 192, 1, in_turn, 1, 5, 1, 613, 4112},
                                                         {128, 160, 1, in_turn, 1, 5, 2, 494, 3861},
                                                         {128, 128, 1, in_turn, 1, 6, 1, 395, 3522},
                                                         {128, 224, 1, skewed, 1, 4, 4, 674, 2996},
                                                         {128, 160, 1, skewed, 1, 5, 3, 486, 2412},
                                                         {128, 128, 1, together, 1, 6, 2, 372, 2497},
                                                         {128, 96, 1, together, 1, 7, 1, 293, 1551},
                                                         {64, 192, 1, together, 1, 6, 3, 296, 1739},
                                                         {64, 128, 1, together, 1, 8, 2, 208, 1549},
                                                         {64, 96, 1, together, 1, 8, 3, 146, 2458},
                                                         {64, 64, 1, together, 1, 12, 1, 122, 1545}}};
inline constexpr std::array<GemmTile, 11> promote_tiles = {{{128, 256, 2, together, 1, 4, 1, 820, 3534},
                                                            {128, 224, 2, together, 1, 4, 4, 720, 3460},
                                                            {192, 128, 1, together, 1, 4, 2, 601, 1715},
                                                            {128, 160, 1, together, 1, 5, 5, 503, 2311},
                                                            {128, 128, 1, together, 1, 6, 2, 425, 1579},
                                                            {128, 96, 1, together, 1, 7, 1, 326, 1996},
                                                            {128, 64, 1, together, 1, 8, 1, 207, 2075},
                                                            {64, 128, 1, together, 2, 6, 2, 212, 3833},
                                                            {64, 96, 1, together, 2, 8, 1, 167, 3103},
                                                            {64, 64, 1, together, 2, 12, 1, 130, 1995},
                                                            {64, 32, 1, together, 2, 14, 1, 112, 1992}}};
// Columns are a divisor of 128 or a multiple of 64: 128-blocks of B begin where 64 columns do.
inline constexpr std::array<GemmTile, 8> block_tiles = {{{128, 256, 2, together, 1, 4, 1, 856, 3225},
                                                         {192, 128, 1, together, 1, 4, 2, 581, 1975},
                                                         {128, 192, 1, together, 1, 4, 1, 635, 2364},
                                                         {128, 128, 1, together, 1, 6, 1, 459, 1714},
                                                         {128, 64, 1, together, 1, 8, 1, 276, 2060},
                                                         {64, 128, 1, together, 2, 6, 2, 223, 4199},
                                                         {64, 64, 1, together, 2, 10, 1, 170, 2048},
                                                         {64, 32, 1, together, 2, 12, 1, 166, 1200}}};

// For SwiGLU whose D gets a scale a 128 columns: 256 sums of a row, which leave no registers beside
// accumulators of the tensor cores that wide, so fast ones are promoted, too.
inline constexpr std::array<GemmTile, 2> wide_tiles = {
    {{128, 256, 2, together, 1, 4, 1, 865, 3900}, {64, 256, 2, together, 1, 5, 1, 545, 3000}}};

/// Waves of tiles, each as long as its arithmetic or as its operands take to arrive, and, in turn, no shorter
/// than half of what a warpgroup is busy with a tile; all together no shorter than memory takes for operands
/// and D, of `d_bytes` a product. In floating point, for extents of any size.
inline double modelled_ns(const GemmTile& tile, std::int64_t m, std::int64_t n, std::int64_t k_blocks,
                          int sm_count, double d_bytes) {
  constexpr double bytes_per_ns = 145;  // into one multiprocessor
  constexpr double memory_bytes_per_ns = 4100, memory_latency_ns = 500;
  const auto rows = static_cast<double>(m), columns = static_cast<double>(n);
  const double k = static_cast<double>(k_blocks) * 128;
  const double tiles = std::ceil(rows / tile.m) * std::ceil(columns / tile.n);
  const double waves = std::ceil(tiles / sm_count);
  const double loads = (std::min<double>(rows, tile.m) + std::min<double>(columns, tile.n)) * 128;
  const double block_ns = std::max<double>(tile.block_ns, loads / bytes_per_ns);
  const double products = k / 128 * block_ns, whole = products + tile.overhead_ns;
  const double work =
      tile.schedule == in_turn ? waves * std::max(products, whole / 2) + tile.overhead_ns : waves * whole;
  const double bytes = (rows + columns) * k + d_bytes * rows * columns;
  return std::max(work, bytes / memory_bytes_per_ns + memory_latency_ns + tile.overhead_ns);
}

}  // namespace mxjit::configure
