// How the thread blocks of a grid walk the tiles of x, and the experts one after another.
#pragma once

#include "quantize/panel.cuh"
#include "quantize/params.cuh"

namespace mxjit {

/// The parameters of one expert, but for what the kernel's scales take.
template <class Config>
__device__ __forceinline__ QuantizeParams expert_data(QuantizeParams p, i64 index) {
  p.x = static_cast<const u8*>(p.x) + index * p.expert_x * Pairs<Config::stored>::bytes;
  if constexpr (Config::pre == Pre::rmsnorm) p.sums += index * p.m;
  if constexpr (Config::pre == Pre::rmsnorm_turned) p.sums += index * p.n;
  if constexpr (Config::high != High::none) p.y += index * (Config::high == High::row ? p.m : p.n) * p.ld_y;
  p.q_row += index * p.m * p.ld_q_row;
  p.q_col += index * p.n * p.ld_q_col;
  return p;
}

template <class Kernel, class Config>
__device__ __forceinline__ void run_tile(const QuantizeParams& p, u32 tile_m, u32 tile_n,
                                         typename Kernel::template Staging<Config>& staging) {
  static_assert(sizeof staging <= 48 * 1024 - 64, "what every device gives a thread block, less a few words");
  if (tile_n >= p.tiles_n) return;  // the last strip may be narrower
  const Lane<Config> lane(p, tile_m, tile_n);
  Kernel::template tile<Config>(p, lane, staging);
}

/// Calls Kernel::tile for this thread block's tile, with the parameters of its expert. The grid walks a strip
/// of gridDim.x tiles of a row downwards, then the next strip, so that thread blocks at work together stay
/// near each other in x and in both outputs. `backwards`: from the end, where an earlier kernel that walked
/// forwards has left x in the cache.
template <class Kernel, class Config, bool backwards = false>
__device__ __forceinline__ void walk_tiles(const QuantizeParams& params) {
  const u32 x = backwards ? gridDim.x - 1 - blockIdx.x : blockIdx.x;
  const u32 y = backwards ? gridDim.y - 1 - blockIdx.y : blockIdx.y;
  const u32 z = backwards ? gridDim.z - 1 - blockIdx.z : blockIdx.z;
  const u32 tile_m = params.first_tile_m + y;
  __shared__ typename Kernel::template Staging<Config> staging;
  if constexpr (Config::batched) {
    run_tile<Kernel, Config>(Kernel::template expert<Config>(params, params.first_expert + z / params.strips),
                             tile_m, z % params.strips * gridDim.x + x, staging);
  } else {
    run_tile<Kernel, Config>(params, tile_m, z * gridDim.x + x, staging);
  }
}

}  // namespace mxjit
