// One launch of a loaded kernel.
#pragma once

#include "driver/loaded_kernel.hpp"

namespace mxjit::driver {

/// Thread blocks of a grid.
struct GridExtents {
  unsigned x = 1, y = 1, z = 1;
};

/// Launches `kernel` with `params`, its only parameter. Allocates nothing. Throws Error(driver).
void launch(const Api& api, const LoadedKernel& kernel, const GridExtents& blocks, void* params,
            CUstream stream);

}  // namespace mxjit::driver
