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

/// 4 bytes, both addresses multiples of that; zeros, and nothing read, without `read`.
__device__ __forceinline__ void copy_async_4(void* shared, const void* from, bool read) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(shared_address(shared)), "l"(from),
               "r"(read ? 4 : 0)
               : "memory");
}

/// Arrives, one of those that the barrier's phase takes, when all that this thread has asked for is there.
__device__ __forceinline__ void copy_async_arrive(u64* barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(shared_address(barrier))
               : "memory");
}

/// What was asked for since the last commit is a group.
__device__ __forceinline__ void copy_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }

/// Waits until at most the last `pending` groups of this thread are on their way.
template <int pending>
__device__ __forceinline__ void copy_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
}

/// Waits until all that this thread has asked for is there.
__device__ __forceinline__ void copy_async_wait_all() { asm volatile("cp.async.wait_all;" ::: "memory"); }

}  // namespace mxjit::ptx
