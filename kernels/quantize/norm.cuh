// RMSNorm and quantization in one launch: a first pass over tiles adds up squares; where scales span more
// than a tile, a second one finds largest magnitudes; the last one quantizes.
//
// Of two passes the second follows the first at a distance of few lines of tiles - what is normalized lies
// along one - so that it finds x in the cache. Otherwise each starts when the one before is done.
#pragma once

#include "quantize/conditional.cuh"
#include "quantize/fp32.cuh"
#include "quantize/fp32_maxima.cuh"
#include "quantize/mx.cuh"
#include "quantize/norm_sums.cuh"
#include "quantize/params.cuh"
#include "quantize/two_passes.cuh"

namespace mxjit {

struct QuantizeNorm {
  using Params = QuantizeParams;

  template <class Config>
  static __device__ __forceinline__ void run(const Params& p) {
    constexpr bool spans = Config::span != Span::block;  // more than a tile
    const u32 tiles = p.strip, all = gridDim.x / (spans ? 3 : 2), lines = all / tiles;
    u32 number = take_number(p.progress);
    int pass = 0;
    if (spans && number >= 2 * all) {
      number -= 2 * all;
      pass = 2;
    }
    PassWork work = {true, number / tiles, number % tiles};
    if (pass == 0) {
      work = work_of(number, tiles, lines, spans ? lines : p.lead);
      pass = work.first_pass ? 0 : 1;
    }
    // A word a pass, or a line.
    const u32 line = work.strip;
    u32* const found = p.progress + 1;
    if (pass > 0) wait_until_done(spans ? found + (pass - 1) : found + line, spans ? all : tiles);
    using Quantize = typename Either<Config::mx, QuantizeMx, QuantizeFp32>::type;
    using Earlier = typename Either<spans, Fp32Maxima, NormSums>::type;
    __shared__
        PassStaging<typename Earlier::template Staging<Config>, typename Quantize::template Staging<Config>>
            staging;
    if (pass == 0) {
      NormSums::Staging<Config> nothing;
      run_on<NormSums, Config>(p, line, work.tile, nothing);
    } else if (spans && pass == 1) {
      if constexpr (spans) run_on<Earlier, Config>(p, line, work.tile, staging.first);
    } else {
      run_on<Quantize, Config>(p, line, work.tile, staging.second);
    }
    if (pass < (spans ? 2 : 1)) tell_done(spans ? found + pass : found + line);
  }

 private:
  template <class Kernel, class Config>
  static __device__ __forceinline__ void run_on(const Params& p, u32 line, u32 tile,
                                                typename Kernel::template Staging<Config>& staging) {
    constexpr bool turned = Config::pre == Pre::rmsnorm_turned;
    const u32 across = line % p.strips;  // lines of an expert
    const u32 tile_m = turned ? tile : across, tile_n = turned ? across : tile;
    if constexpr (Config::batched) {
      run_tile<Kernel, Config>(Kernel::template expert<Config>(p, line / p.strips), tile_m, tile_n, staging);
    } else {
      run_tile<Kernel, Config>(p, tile_m, tile_n, staging);
    }
  }
};

}  // namespace mxjit
