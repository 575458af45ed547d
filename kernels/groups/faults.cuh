// What can be wrong with groups whose ends only the device knows, and how it is reported.
#pragma once

#include "ptx/memory.cuh"

namespace mxjit {

/// What is wrong, as status[0] says it; status[1] is the group and status[2] its end or start.
enum class Fault : i32 { none = 0, end_falls = 1, end_outside = 2, size_unaligned = 3, start_outside = 4 };

/// Of a group from `start`, the end before it, to `end`, each as it was given.
__device__ __forceinline__ Fault end_fault(i32 end, i32 start, i64 limit, i32 alignment) {
  if (end < 0 || end > limit) return Fault::end_outside;
  if (end < start) return Fault::end_falls;
  const u32 size = static_cast<u32>(end) - static_cast<u32>(start);
  return size % static_cast<u32>(alignment) != 0 ? Fault::size_unaligned : Fault::none;
}

/// The first fault stays.
__device__ __forceinline__ void report_fault(i32* status, Fault fault, int group, i32 value) {
  if (status == nullptr || atomicCAS(status, 0, static_cast<i32>(fault)) != 0) return;
  status[1] = group;
  status[2] = value;
}

/// Each lane tells of its group; by a whole warp, lanes in the order of groups. The lowest faulty group is
/// reported.
__device__ __forceinline__ void report_first_fault(i32* status, Fault fault, int group, i32 value) {
  const u32 lane = threadIdx.x % 32;
  u32 first = fault != Fault::none ? lane : 32;
#pragma unroll 1
  for (u32 mask = 16; mask > 0; mask /= 2) {
    const u32 other = ptx::shfl_xor(first, mask);
    if (other < first) first = other;
  }
  if (first == lane) report_fault(status, fault, group, value);
}

}  // namespace mxjit
