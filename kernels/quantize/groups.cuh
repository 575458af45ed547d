// Groups along the rows of x. The group ends are read here, in the kernel: sizes are never known to the host.
// Ends that fall, leave the matrix or break the alignment are reported, and counted as the nearest ones that
// do not, so that nothing outside the outputs is written.
#pragma once

#include "groups/faults.cuh"
#include "ptx/memory.cuh"
#include "quantize/params.cuh"

namespace mxjit {

/// Group ends with what the groups before them take: rows and columns of codes, padded to whole tiles.
template <int most>
struct GroupTable {
  i32 ends[most];
  u32 padded_rows[most];
  u32 padded_blocks[most];
  i32 count;
  u32 all_rows, all_blocks;

  /// The first group that ends after `row`, so an empty one never; `count` where there is none.
  __device__ __forceinline__ int find(i64 row) const {
    int low = 0, high = count;
    while (low < high) {
      const int middle = (low + high) / 2;
      if (ends[middle] > row) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    return low;
  }
  /// The group that owns all of `rows` rows from `row` on, as far as they lie inside the m rows of the
  /// matrix; negative where there is no such one.
  __device__ __forceinline__ int owner(i64 row, int rows, i64 m) const {
    const int group = find(row);
    const i64 end = row + rows < m ? row + rows : m;
    return group < count && end <= ends[group] ? group : -1;
  }
  __device__ __forceinline__ i32 start(int group) const { return group == 0 ? 0 : ends[group - 1]; }
};

/// Fills the table for groups of `rows` rows; by one warp. `block`: rows of x that a "col" code covers.
template <int alignment, int block, int most>
__device__ __forceinline__ void read_groups(const QuantizeParams& p, i64 rows, bool report,
                                            GroupTable<most>& table) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  i32 before = 0, raw_before = 0;
  u32 rows_before = 0, blocks_before = 0;
#pragma unroll 1
  for (int first = 0; first < p.groups; first += 32) {
    const int group = first + lane;
    const i32 raw = group < p.groups ? static_cast<i32>(ptx::ld_nc_u32(p.offsets + group)) : 0;
    i32 end = group >= p.groups || raw < 0 ? 0 : raw > rows ? static_cast<i32>(rows) : raw;
    end = end < before ? before : end;
    for (int d = 1; d < 32; d *= 2) {
      const i32 other = static_cast<i32>(ptx::shfl_up(static_cast<u32>(end), d));
      if (lane >= d && other > end) end = other;
    }
    i32 start = static_cast<i32>(ptx::shfl_up(static_cast<u32>(end), 1));
    if (lane == 0) start = before;

    if (report && p.status != nullptr) {
      i32 previous = static_cast<i32>(ptx::shfl_up(static_cast<u32>(raw), 1));
      if (lane == 0) previous = raw_before;
      report_first_fault(p.status, group < p.groups ? end_fault(raw, previous, rows, alignment) : Fault::none,
                         group, raw);
      raw_before = static_cast<i32>(ptx::shfl(static_cast<u32>(raw), 31));
    }

    const u32 size = static_cast<u32>(end - start);
    const u32 padded = (size + 127) / 128 * 128, blocks = ((size + block - 1) / block + 3) / 4 * 4;
    u32 row_sum = padded, block_sum = blocks;
    for (int d = 1; d < 32; d *= 2) {
      const u32 other_rows = ptx::shfl_up(row_sum, d), other_blocks = ptx::shfl_up(block_sum, d);
      if (lane >= d) row_sum += other_rows, block_sum += other_blocks;
    }
    if (group < p.groups) {
      table.ends[group] = end;
      table.padded_rows[group] = rows_before + row_sum - padded;
      table.padded_blocks[group] = blocks_before + block_sum - blocks;
    }
    before = static_cast<i32>(ptx::shfl(static_cast<u32>(end), 31));
    rows_before += ptx::shfl(row_sum, 31);
    blocks_before += ptx::shfl(block_sum, 31);
  }
  if (lane == 0) {
    table.count = p.groups;
    table.all_rows = rows_before;
    table.all_blocks = blocks_before;
  }
}

}  // namespace mxjit
