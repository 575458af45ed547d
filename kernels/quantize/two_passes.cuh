// Passes over tiles in one launch. Thread blocks take a number each, and wait for blocks with lower numbers
// only, which have started and need nothing more.
#pragma once

#include "ptx/memory.cuh"
#include "ptx/types.cuh"

namespace mxjit {

/// The thread block's number, in the order of their starts.
__device__ __forceinline__ u32 take_number(u32* next) {
  __shared__ u32 taken;
  if (threadIdx.x == 0) taken = atomicAdd(next, 1u);
  __syncthreads();
  return taken;
}

/// Tells those that wait that this thread block, all of it, has written what they read.
__device__ __forceinline__ void tell_done(u32* done) {
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();  // releases what the barrier gathered from all threads
    atomicAdd(done, 1u);
  }
}

/// Waits until `count` thread blocks have told so.
__device__ __forceinline__ void wait_until_done(const u32* done, u32 count) {
  if (threadIdx.x == 0) {
    while (ptx::ld_acquire(done) < count) ptx::nanosleep(100);
  }
  __syncthreads();
}

/// Shared memory of a thread block that makes one of two passes.
template <class First, class Second>
union PassStaging {
  First first;
  Second second;
};

/// A tile of a strip; strips of one expert follow those of another.
struct PassWork {
  bool first_pass;
  u32 strip, tile;
};

/// The first pass over `lead` strips, then by turns a tile of the first pass and one of the second, `lead`
/// strips behind, then the rest of the second.
__device__ __forceinline__ PassWork work_of(u32 number, u32 tiles, u32 strips, u32 lead) {
  const u32 ahead = lead < strips ? lead : strips;
  if (number < ahead * tiles) return {true, number / tiles, number % tiles};
  number -= ahead * tiles;
  const u32 both = 2 * tiles * (strips - ahead);
  if (number < both) {
    const u32 strip = number / (2 * tiles), turn = number % (2 * tiles);
    if (turn % 2 == 0) return {true, strip + ahead, turn / 2};
    return {false, strip, turn / 2};
  }
  number -= both;
  // What the first pass read last comes first.
  if (ahead == strips) number = ahead * tiles - 1 - number;
  return {false, strips - ahead + number / tiles, number % tiles};
}

}  // namespace mxjit
