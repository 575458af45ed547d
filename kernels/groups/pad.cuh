// Rows of groups moved to starts that are multiples of a unit, and back. Rows that no group owns are zero.
#pragma once

#include "groups/group_ends.cuh"
#include "ptx/memory.cuh"

namespace mxjit {

struct GroupsPad {
  using Params = PadGroupsParams;

  template <class Config>
  static __device__ __forceinline__ void run(const Params& p) {
    __shared__ GroupEnds groups;
    groups.read(p.groups, p.unit);
    const i64 rows_at_once = i64{gridDim.x} * (blockDim.x / p.lanes);
    const u32 lane = threadIdx.x % p.lanes;
    for (i64 row = i64{blockIdx.x} * (blockDim.x / p.lanes) + threadIdx.x / p.lanes; row < p.to_rows;
         row += rows_at_once) {
      const i64 source = Config::unpad ? padded_row(p, groups, row) : unpadded_row(groups, row);
      const u8* from = p.from + source * p.from_pitch;
      u8* to = p.to + row * p.to_pitch;
      switch (p.piece) {
        case 16:
          copy<Vector4>(from, to, source >= 0, lane, p);
          break;
        case 4:
          copy<u32>(from, to, source >= 0, lane, p);
          break;
        case 2:
          copy<u16>(from, to, source >= 0, lane, p);
          break;
        default:
          copy<u8>(from, to, source >= 0, lane, p);
      }
    }
    if (!Config::unpad && blockIdx.x == 0) {
      for (int group = static_cast<int>(threadIdx.x); group < groups.count;
           group += static_cast<int>(blockDim.x)) {
        p.starts[group] = static_cast<i32>(groups.places[group]);
        p.padded_ends[group] =
            static_cast<i32>(group + 1 < groups.count ? groups.places[group + 1] : groups.all);
      }
    }
  }

 private:
  /// The row of x that padded row `row` is a copy of, or -1.
  static __device__ __forceinline__ i64 unpadded_row(const GroupEnds& groups, i64 row) {
    const int group = groups.find_place(row);
    if (group == groups.count) return -1;
    const i64 in_group = row - groups.places[group];
    return in_group < groups.size(group) ? groups.start(group) + in_group : -1;
  }

  /// The row of x_padded that row `row` is a copy of, or -1.
  static __device__ __forceinline__ i64 padded_row(const Params& p, const GroupEnds& groups, i64 row) {
    const int group = groups.find(row);
    if (group == groups.count) return -1;
    const i32 start = static_cast<i32>(ptx::ld_nc_u32(p.given_starts + group));
    const i64 source = start + (row - groups.start(group));
    if (start < 0 || start + i64{groups.size(group)} > p.from_rows) {
      report_fault(p.groups.status, Fault::start_outside, group, start);
      if (source < 0 || source >= p.from_rows) return -1;
    }
    return source;
  }

  static __device__ __forceinline__ void load(const u8* from, Vector4& v) { v = ptx::ld_nc_v4(from); }
  static __device__ __forceinline__ void load(const u8* from, u32& v) { v = ptx::ld_nc_u32(from); }
  static __device__ __forceinline__ void load(const u8* from, u16& v) { v = ptx::ld_nc_u16(from); }
  static __device__ __forceinline__ void load(const u8* from, u8& v) { v = ptx::ld_nc_u8(from); }

  template <class Piece>
  static __device__ __forceinline__ void copy(const u8* from, u8* to, bool real, u32 lane, const Params& p) {
    constexpr int bytes = sizeof(Piece);
    const i64 stride = i64{p.lanes} * bytes;
#pragma unroll(bytes == 16 ? 4 : 1)
    for (i64 at = i64{lane} * bytes; at < p.row_bytes; at += stride) {
      Piece piece{};
      if (real) load(from + at, piece);
      ptx::st_global(to + at, piece);
    }
  }
};

}  // namespace mxjit
