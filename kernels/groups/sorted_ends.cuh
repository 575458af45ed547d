// Ends of groups that lie on the device: how a warp reads them, and which group owns a row.
//
// Ends that fall, leave their range or break the alignment are reported, and count as the nearest ones that
// neither fall nor leave it, so that what follows from them stays inside the tensors.
#pragma once

#include "groups/faults.cuh"
#include "groups/params.cuh"
#include "ptx/memory.cuh"

namespace mxjit {

template <int most>
struct SortedEnds {
  i32 ends[most];
  i32 count;

  __device__ __forceinline__ i32 start(int group) const { return group == 0 ? 0 : ends[group - 1]; }
  __device__ __forceinline__ i32 size(int group) const { return ends[group] - start(group); }
  /// The group that owns `row`: the first that ends after it, so an empty one never; `count` where none does.
  __device__ __forceinline__ int find(i64 row) const {
    return first([&](int group) { return ends[group] > row; });
  }

 protected:
  /// The first group that is `past`, as all after it are; `count` where none is.
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
};

/// A warp's way through the ends, 32 groups at a time, one a lane.
class EndsOfWarp {
 public:
  struct Rows {
    i32 start, end;
  };
  /// Those of the lane's group: a multiple of 32, more by 32 with every call, and the lane. Past the last
  /// group they mean nothing.
  __device__ __forceinline__ Rows next(const GroupParams& p, int group, bool report) {
    const bool real = group < p.count;
    const i32 raw = real ? static_cast<i32>(ptx::ld_nc_u32(p.ends + group)) : 0;
    i32 end = raw < 0 ? 0 : raw > p.limit ? static_cast<i32>(p.limit) : raw;
    if (end < before_) end = before_;
    for (u32 d = 1; d < 32; d *= 2) {
      const i32 other = from_below(end, d);
      if (other > end) end = other;  // the lowest lanes meet themselves
    }
    i32 start = from_below(end, 1);
    if (group % 32 == 0) start = before_;
    if (report) {
      i32 raw_start = from_below(raw, 1);
      if (group % 32 == 0) raw_start = raw_before_;
      report_first_fault(p.status, real ? end_fault(raw, raw_start, p.limit, p.alignment) : Fault::none,
                         group, raw);
      raw_before_ = static_cast<i32>(ptx::shfl(static_cast<u32>(raw), 31));
    }
    before_ = static_cast<i32>(ptx::shfl(static_cast<u32>(end), 31));
    return {start, end};
  }

 private:
  static __device__ __forceinline__ i32 from_below(i32 value, u32 lanes) {
    return static_cast<i32>(ptx::shfl_up(static_cast<u32>(value), lanes));
  }

  i32 before_ = 0, raw_before_ = 0;
};

/// Of a sum over a warp: that of the lanes before this one, and of all.
struct Share {
  u32 before, all;
};
__device__ __forceinline__ Share share_of_warp(u32 value) {
  u32 sum = value;
  for (u32 d = 1; d < 32; d *= 2) {
    const u32 other = ptx::shfl_up(sum, d);
    if (threadIdx.x % 32 >= d) sum += other;
  }
  return {sum - value, ptx::shfl(sum, 31)};
}

}  // namespace mxjit
