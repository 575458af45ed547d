// Groups whose ends lie on the device: read once a thread block, together with where each group lies when
// every size is rounded up.
//
// Ends that fall, leave their range or break the alignment are reported, and count as the nearest ones that
// neither fall nor leave it, so that what follows from them stays inside the tensors.
#pragma once

#include "groups/faults.cuh"
#include "groups/params.cuh"
#include "ptx/memory.cuh"

namespace mxjit {

struct GroupEnds {
  i32 ends[most_groups];
  u32 places[most_groups];  // starts, sizes rounded up
  i32 count;
  u32 all;  // what all groups take, sizes rounded up

  /// Where no group lies any more.
  __device__ __forceinline__ i64 owned() const { return ends[count - 1]; }
  __device__ __forceinline__ i32 start(int group) const { return group == 0 ? 0 : ends[group - 1]; }
  __device__ __forceinline__ i32 size(int group) const { return ends[group] - start(group); }

  /// The group that owns `row`; `count` where none does.
  __device__ __forceinline__ int find(i64 row) const {
    return first([&](int group) { return ends[group] > row; });
  }
  /// The group whose rounded-up rows hold `place`; `count` where none does.
  __device__ __forceinline__ int find_place(i64 place) const {
    return first([&](int group) { return (group + 1 < count ? places[group + 1] : all) > place; });
  }

  /// Reads the ends, by the block's first warp; `unit`: what sizes are rounded up to. The block waits.
  __device__ __forceinline__ void read(const GroupParams& p, u32 unit) {
    if (threadIdx.x < 32) read_by_warp(p, unit);
    __syncthreads();
  }

 private:
  template <class Past>
  __device__ __forceinline__ int first(Past past) const {
    int low = 0, high = count;
    while (low < high) {
      const int middle = (low + high) / 2;
      if (past(middle)) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    return low;
  }

  __device__ __forceinline__ void read_by_warp(const GroupParams& p, u32 unit) {
    const int lane = static_cast<int>(threadIdx.x);
    i32 before = 0, raw_before = 0;
    u32 taken = 0;
#pragma unroll 1
    for (int base = 0; base < p.count; base += 32) {
      const int group = base + lane;
      const bool real = group < p.count;
      const i32 raw = real ? static_cast<i32>(ptx::ld_nc_u32(p.ends + group)) : 0;
      i32 end = raw < 0 ? 0 : raw > p.limit ? static_cast<i32>(p.limit) : raw;
      if (end < before) end = before;
#pragma unroll 1
      for (u32 d = 1; d < 32; d *= 2) {
        const i32 other = static_cast<i32>(ptx::shfl_up(static_cast<u32>(end), d));
        if (other > end) end = other;  // the lowest lanes meet themselves
      }
      i32 start = static_cast<i32>(ptx::shfl_up(static_cast<u32>(end), 1));
      i32 raw_start = static_cast<i32>(ptx::shfl_up(static_cast<u32>(raw), 1));
      if (lane == 0) start = before, raw_start = raw_before;
      if (blockIdx.x == 0)
        report_first_fault(p.status, real ? end_fault(raw, raw_start, p.limit, p.alignment) : Fault::none,
                           group, raw);
      const u32 rounded = (static_cast<u32>(end - start) + unit - 1) / unit * unit;
      u32 sum = rounded;
#pragma unroll 1
      for (u32 d = 1; d < 32; d *= 2) {
        const u32 other = ptx::shfl_up(sum, d);
        if (lane >= static_cast<int>(d)) sum += other;
      }
      if (real) {
        ends[group] = end;
        places[group] = taken + sum - rounded;
      }
      before = static_cast<i32>(ptx::shfl(static_cast<u32>(end), 31));
      raw_before = static_cast<i32>(ptx::shfl(static_cast<u32>(raw), 31));
      taken += ptx::shfl(sum, 31);
    }
    if (lane == 0) {
      count = p.count;
      all = taken;
    }
  }
};

}  // namespace mxjit
