// From a loaded GEMM kernel and checked tensors to a launch.
#pragma once

#include "configure/configuration.hpp"
#include "dispatch/gemm_check.hpp"
#include "driver/loaded_kernel.hpp"
#include "mxjit/gemm.hpp"

namespace mxjit::dispatch {

/// What a launch needs to know of a configuration, found out once, when the plan is made. Plain data.
struct GemmRecipe {
  bool dense = false;            // the Hopper kernel; else the general one
  int block_m = 0, block_n = 0;  // a tile
  int passes = 1;                // tiles of columns that a block of the general kernel computes
  bool bulk_store = false;
  unsigned sm_count = 1;
};

/// Throws Error(internal) for a configuration of another kernel.
GemmRecipe gemm_recipe(const configure::Configuration& configuration, int sm_count);

/// Zeroes amax on `stream` where the options ask for it: the kernels only raise it. Throws Error(driver).
void clear_amax(const driver::Api& api, const GemmOptions& options, const GemmArgs& args, CUstream stream);

/// Clears amax and launches `kernel` on `stream`, once, or, the Hopper kernel, once for each matrix of a
/// batch. The tensors have been checked against `options`. Allocates nothing. A problem without output
/// launches nothing. Throws Error(driver), Error(unsupported) for more tiles than a grid holds.
void launch_gemm(const driver::Api& api, driver::LoadedKernel kernel, const GemmRecipe& recipe,
                 const GemmOptions& options, const GemmArgs& args, const GemmSizes& sizes, CUstream stream);

}  // namespace mxjit::dispatch
