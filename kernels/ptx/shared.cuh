// Shared memory: its addresses, the block's dynamic part, matrix stores, barriers of some of a block's
// threads.
#pragma once

#include "ptx/types.cuh"

namespace mxjit::ptx {

/// The block's dynamic shared memory, aligned to 1024 bytes: a swizzle atom.
__device__ __forceinline__ u8* dynamic_shared() {
  extern __shared__ __align__(1024) u8 memory[];
  return memory;
}

__device__ __forceinline__ u32 shared_address(const void* pointer) {
  return static_cast<u32>(__cvta_generic_to_shared(pointer));
}

/// Four 8 x 8 matrices of 16-bit elements; lane l gives the address of row l % 8 of matrix l / 8.
__device__ __forceinline__ void stmatrix_x4(u32 address, u32 a, u32 b, u32 c, u32 d) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(a),
               "r"(b), "r"(c), "r"(d)
               : "memory");
}

/// Barrier `id` (0 is the block's own) of `threads` threads.
template <int threads>
__device__ __forceinline__ void bar_sync(int id) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "n"(threads) : "memory");
}

}  // namespace mxjit::ptx
