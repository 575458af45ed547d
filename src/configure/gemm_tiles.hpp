// The tiles of the Hopper GEMM kernel and what each costs, measured on an H200 (tools/bench/README.md).
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "configure/gemm.hpp"

namespace mxjit::configure {

// {m, n, parts, skewed, k_split, stages, out_boxes, ns of 128 of K, ns of a tile besides}
inline constexpr std::array<GemmTile, 10> fast_tiles = {{{128, 256, 1, true, 1, 4, 2, 817, 1700},
                                                         {128, 224, 1, true, 1, 4, 4, 735, 2000},
                                                         {128, 192, 1, false, 1, 4, 3, 620, 1800},
                                                         {128, 160, 1, true, 1, 5, 3, 520, 1600},
                                                         {128, 128, 1, false, 1, 6, 2, 450, 1400},
                                                         {64, 192, 1, false, 1, 6, 3, 330, 3500},
                                                         {64, 128, 1, false, 1, 8, 2, 235, 900},
                                                         {64, 96, 1, false, 1, 8, 3, 160, 1700},
                                                         {64, 64, 1, false, 1, 12, 1, 113, 1700},
                                                         {64, 32, 1, false, 2, 14, 1, 100, 1900}}};
inline constexpr std::array<GemmTile, 10> promote_tiles = {{{192, 128, 1, false, 1, 4, 2, 613, 1800},
                                                            {128, 256, 2, false, 1, 4, 1, 860, 2200},
                                                            {128, 224, 2, false, 1, 4, 4, 765, 2000},
                                                            {128, 160, 1, false, 1, 5, 5, 541, 1600},
                                                            {128, 128, 1, false, 1, 6, 2, 450, 1400},
                                                            {64, 192, 1, false, 1, 6, 3, 420, 5000},
                                                            {64, 128, 1, false, 1, 8, 2, 300, 700},
                                                            {64, 128, 1, false, 2, 7, 2, 240, 2100},
                                                            {64, 64, 1, false, 1, 12, 1, 152, 1430},
                                                            {64, 64, 1, false, 2, 12, 1, 108, 2340}}};
// A part of the columns lies inside one 128-block of B.
inline constexpr std::array<GemmTile, 6> block_tiles = {{{192, 128, 1, false, 1, 4, 2, 640, 1800},
                                                         {128, 256, 2, false, 1, 4, 1, 930, 2200},
                                                         {128, 128, 1, false, 1, 6, 1, 490, 1400},
                                                         {64, 128, 1, false, 2, 7, 2, 250, 1400},
                                                         {64, 64, 1, false, 1, 12, 1, 180, 2180},
                                                         {64, 64, 1, false, 2, 11, 1, 116, 2620}}};

/// Waves of tiles, each as long as its arithmetic or as its operands take to arrive; all together no shorter
/// than memory takes for operands and D, at 16 bits an element. In floating point, for extents of any size.
inline double modelled_ns(const GemmTile& tile, std::int64_t m, std::int64_t n, std::int64_t k_blocks,
                          int sm_count) {
  constexpr double bytes_per_ns = 145;  // into one multiprocessor
  constexpr double memory_bytes_per_ns = 4100, memory_latency_ns = 500;
  const double rows = static_cast<double>(m), columns = static_cast<double>(n);
  const double k = static_cast<double>(k_blocks) * 128;
  const double tiles = std::ceil(rows / tile.m) * std::ceil(columns / tile.n);
  const double waves = std::ceil(tiles / sm_count);
  const double loads = (std::min<double>(rows, tile.m) + std::min<double>(columns, tile.n)) * 128;
  const double block_ns = std::max<double>(tile.block_ns, loads / bytes_per_ns);
  const double work = waves * (k / 128 * block_ns + tile.overhead_ns);
  const double bytes = (rows + columns) * k + 2 * rows * columns;
  return std::max(work, bytes / memory_bytes_per_ns + memory_latency_ns + tile.overhead_ns);
}

}  // namespace mxjit::configure
