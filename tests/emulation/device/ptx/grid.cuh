// As kernels/ptx/grid.cuh: grids run one after the other, so there is nothing to do.
#pragma once

namespace mxjit::ptx {

inline void grid_wait() {}
inline void grid_launch_dependents() {}

}  // namespace mxjit::ptx
