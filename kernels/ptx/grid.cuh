// Dependent launches: a grid that starts while the one before it on its stream still runs. Both instructions
// do nothing in a grid that was launched without, or that nothing depends on.
#pragma once

namespace mxjit::ptx {

/// Waits for the end of the grids that this one depends on, and sees all that they wrote.
__device__ __forceinline__ void grid_wait() { asm volatile("griddepcontrol.wait;" ::: "memory"); }

/// From when every thread block has passed here or ended, the next grid may start.
__device__ __forceinline__ void grid_launch_dependents() {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

}  // namespace mxjit::ptx
