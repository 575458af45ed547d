// What every kernel starts with, so that it may be launched as a dependent of whatever precedes it.
#pragma once

#include "ptx/grid.cuh"

namespace mxjit {

/// Runs `Kernel` once earlier grids are done with all memory. A template may have a `prepare`, which comes
/// before that: it touches shared memory and the parameters only.
template <class Kernel, class Config>
__device__ __forceinline__ void enter(const typename Kernel::Params& params) {
  if constexpr (requires { Kernel::template prepare<Config>(params); })
    Kernel::template prepare<Config>(params);
  ptx::grid_wait();
  // Not before the wait: a grid overlaps with the one before it, never with an earlier one, so that what its
  // multiprocessor cached for that one is gone (ld.global.nc takes memory for constant while a grid lives).
  // All thread blocks of this grid are on the device by then: the next grid takes only what they leave.
  ptx::grid_launch_dependents();
  Kernel::template run<Config>(params);
}

}  // namespace mxjit
