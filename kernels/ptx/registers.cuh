// Register budget of a warpgroup, moved between the warps that copy and the warps that compute; what keeps
// the compiler from spending registers on loads it moves forward.
#pragma once

#include "ptx/memory.cuh"

namespace mxjit::ptx {

template <int count>
__device__ __forceinline__ void raise_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(count));
}

template <int count>
__device__ __forceinline__ void drop_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(count));
}

/// The same value; what follows from it is computed after this, not kept in registers from before a loop.
template <class Word>
__device__ __forceinline__ Word computed_here(Word value) {
  asm volatile("" : "+r"(value));
  return value;
}
__device__ __forceinline__ Vector2 computed_here(Vector2 value) {
  return {computed_here(value.x), computed_here(value.y)};
}

/// A value that all lanes of the warp have, in a form that the compiler knows to be one: what follows from it
/// stays in uniform registers.
__device__ __forceinline__ int same_in_warp(int value) {
  int result;
  asm volatile("shfl.sync.idx.b32 %0, %1, 0, 31, 0xffffffff;" : "=r"(result) : "r"(value));
  return result;
}

/// No access of memory moves across it.
__device__ __forceinline__ void compiler_barrier() { asm volatile("" ::: "memory"); }

}  // namespace mxjit::ptx
