// Quantization with float scales that span more than a tile - a column, rows and columns, the tensor: a first
// pass over tiles finds largest magnitudes, a second one quantizes.
//
// In one launch, where scales span columns alone, the second pass follows the first at a distance of few
// strips, so that it finds x in the cache. A block of the second pass waits for those of the first that found
// its maxima.
//
// A tensor of few tiles takes a launch a pass: nothing is counted, and nothing must be zero before.
#pragma once

#include "quantize/fp32.cuh"
#include "quantize/fp32_maxima.cuh"
#include "quantize/params.cuh"
#include "quantize/tile_grid.cuh"
#include "quantize/two_passes.cuh"

namespace mxjit {

struct QuantizeFp32Passes {
  using Params = QuantizeParams;

  template <class Config>
  static __device__ __forceinline__ void run(const Params& p) {
    const u32 tiles_m = p.m > 0 ? static_cast<u32>((p.m + tile_rows<Config> - 1) / tile_rows<Config>) : 1;
    const u32 tiles = tiles_m * p.strip, all = gridDim.x / (2 * tiles);
    constexpr bool tensor = Config::span == Span::tensor;
    const bool alone = tensor && p.passes != Passes::both;
    const PassWork work = alone ? PassWork{p.passes == Passes::first, blockIdx.x / tiles, blockIdx.x % tiles}
                                : work_of(take_number(p.progress), tiles, all, p.lead);
    // One scale for the tensor waits for everything.
    u32* const found = p.progress + 1 + (tensor ? 0 : work.strip);
    __shared__ PassStaging<Fp32Maxima::Staging<Config>, QuantizeFp32::Staging<Config>> staging;
    if (work.first_pass) {
      run_on<Fp32Maxima, Config>(p, work, staging.first);
      if (!alone) tell_done(found);
    } else {
      if (!alone) wait_until_done(found, tensor ? tiles * all : tiles);
      run_on<QuantizeFp32, Config>(p, work, staging.second);
    }
  }

 private:
  template <class Config>
  static constexpr int tile_rows = Lane<Config>::tile_rows;

  template <class Kernel, class Config>
  static __device__ __forceinline__ void run_on(const Params& p, const PassWork& work,
                                                typename Kernel::template Staging<Config>& staging) {
    const u32 tile_m = work.tile / p.strip, across = work.tile % p.strip;
    if constexpr (Config::batched) {
      run_tile<Kernel, Config>(Kernel::template expert<Config>(p, work.strip / p.strips), tile_m,
                               work.strip % p.strips * p.strip + across, staging);
    } else {
      run_tile<Kernel, Config>(p, tile_m, work.strip * p.strip + across, staging);
    }
  }
};

}  // namespace mxjit
