// Copies from global to shared memory that a thread asks for and waits for itself.
#pragma once

#include "ptx/shared.cuh"

namespace mxjit::ptx {

/// 16 bytes, both addresses multiples of that; zeros, and nothing read, without `read`.
__device__ __forceinline__ void copy_async_16(void* shared, const void* from, bool read) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(shared)), "l"(from),
               "r"(read ? 16 : 0)
               : "memory");
}

/// What was asked for since the last commit is a group.
__device__ __forceinline__ void copy_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }

/// Waits until at most the last `pending` groups of this thread are on their way.
template <int pending>
__device__ __forceinline__ void copy_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
}

}  // namespace mxjit::ptx
