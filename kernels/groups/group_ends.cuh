// Groups whose ends lie on the device: read once a thread block, together with where each group lies when
// every size is rounded up.
#pragma once

#include "groups/sorted_ends.cuh"

namespace mxjit {

struct GroupEnds : SortedEnds<most_groups> {
  u32 places[most_groups];  // starts, sizes rounded up
  u32 all;                  // what all groups take, sizes rounded up

  /// Where no group lies any more.
  __device__ __forceinline__ i64 owned() const { return ends[count - 1]; }
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
  __device__ __forceinline__ void read_by_warp(const GroupParams& p, u32 unit) {
    const int lane = static_cast<int>(threadIdx.x);
    EndsOfWarp warp;
    u32 taken = 0;
#pragma unroll 1
    for (int base = 0; base < p.count; base += 32) {
      const int group = base + lane;
      const auto [start, end] = warp.next(p, group, blockIdx.x == 0);
      const Share share = share_of_warp((static_cast<u32>(end - start) + unit - 1) / unit * unit);
      if (group < p.count) {
        ends[group] = end;
        places[group] = taken + share.before;
      }
      taken += share.all;
    }
    if (lane == 0) {
      count = p.count;
      all = taken;
    }
  }
};

}  // namespace mxjit
