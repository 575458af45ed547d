// Copies from global to shared memory that a thread asks for and waits for itself.
#pragma once

#include "ptx/registers.cuh"
#include "ptx/shared.cuh"

namespace mxjit::ptx {

/// Shared memory that copies fill: one register, and distances from it.
class CopyTarget {
 public:
  explicit __device__ __forceinline__ CopyTarget(void* start)
      : start_(computed_here(shared_address(start))) {}

  /// 16 bytes to `offset`, both addresses multiples of that; zeros, and nothing read, without `read`.
  __device__ __forceinline__ void copy_16(u32 offset, const void* from, bool read) const {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(start_ + offset), "l"(from),
                 "r"(read ? 16 : 0)
                 : "memory");
  }

 private:
  u32 start_;
};

/// What was asked for since the last commit is a group.
__device__ __forceinline__ void copy_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }

/// Waits until at most the last `pending` groups of this thread are on their way.
template <int pending>
__device__ __forceinline__ void copy_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
}

}  // namespace mxjit::ptx
