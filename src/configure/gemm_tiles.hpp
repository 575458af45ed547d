// The tiles of the Hopper GEMM kernel and what each costs, measured on an H200 (tools/bench/README.md).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "configure/gemm.hpp"

namespace mxjit::configure {

// {m, n, parts, stages, ns of 128 of K, ns of a tile besides}
inline constexpr std::array<GemmTile, 7> fast_tiles = {{{128, 256, 1, 4, 817, 2200},
                                                        {128, 224, 1, 4, 735, 2000},
                                                        {128, 192, 1, 4, 640, 1800},
                                                        {128, 128, 1, 6, 450, 1400},
                                                        {64, 192, 1, 6, 330, 1200},
                                                        {64, 128, 1, 8, 235, 1100},
                                                        {64, 64, 1, 12, 130, 900}}};
inline constexpr std::array<GemmTile, 8> promote_tiles = {{{192, 128, 1, 4, 613, 1800},
                                                           {128, 256, 2, 4, 860, 2200},
                                                           {128, 224, 2, 4, 765, 2000},
                                                           {128, 160, 1, 5, 541, 1600},
                                                           {128, 128, 1, 6, 450, 1400},
                                                           {64, 192, 1, 6, 420, 1200},
                                                           {64, 128, 1, 8, 300, 1100},
                                                           {64, 64, 1, 12, 170, 900}}};
// A part of the columns lies inside one 128-block of B.
inline constexpr std::array<GemmTile, 5> block_tiles = {{{192, 128, 1, 4, 665, 1800},
                                                         {128, 256, 2, 4, 930, 2200},
                                                         {128, 128, 1, 6, 490, 1400},
                                                         {64, 128, 1, 8, 320, 1100},
                                                         {64, 64, 1, 12, 185, 900}}};

/// Waves of tiles, each as long as its arithmetic or as its operands take to arrive.
constexpr std::int64_t modelled_ns(const GemmTile& tile, std::int64_t m, std::int64_t n,
                                   std::int64_t k_blocks, int sm_count) {
  constexpr std::int64_t bytes_per_ns = 72;  // into one multiprocessor
  const std::int64_t tiles = ((m + tile.m - 1) / tile.m) * ((n + tile.n - 1) / tile.n);
  const std::int64_t waves = (tiles + sm_count - 1) / sm_count;
  const std::int64_t loads = (std::min<std::int64_t>(m, tile.m) + std::min<std::int64_t>(n, tile.n)) * 128;
  return waves * (k_blocks * std::max<std::int64_t>(tile.block_ns, loads / bytes_per_ns) + tile.overhead_ns);
}

}  // namespace mxjit::configure
