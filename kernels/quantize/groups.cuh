// Groups along the rows of x. The group ends are read here, in the kernel: sizes are never known to the host.
#pragma once

#include "groups/sorted_ends.cuh"
#include "quantize/params.cuh"

namespace mxjit {

/// Group ends with what the groups before them take: rows and columns of codes, padded to whole tiles.
template <int most>
struct GroupTable : SortedEnds<most> {
  u32 padded_rows[most];
  u32 padded_blocks[most];
  u32 all_rows, all_blocks;

  /// The group that owns all of `rows` rows from `row` on, as far as they lie inside the m rows of the
  /// matrix; negative where there is no such one.
  __device__ __forceinline__ int owner(i64 row, int rows, i64 m) const {
    const int group = this->find(row);
    const i64 end = row + rows < m ? row + rows : m;
    return group < this->count && end <= this->ends[group] ? group : -1;
  }
};

/// Fills the table for groups of `rows` rows; by one warp. `block`: rows of x that a "col" code covers.
template <int alignment, int block, int most>
__device__ __forceinline__ void read_groups(const QuantizeParams& p, i64 rows, bool report,
                                            GroupTable<most>& table) {
  const GroupParams groups{p.offsets, p.status, rows, p.groups, alignment};
  const int lane = static_cast<int>(threadIdx.x % 32);
  EndsOfWarp warp;
  u32 rows_before = 0, blocks_before = 0;
#pragma unroll 1
  for (int first = 0; first < p.groups; first += 32) {
    const int group = first + lane;
    const auto [start, end] = warp.next(groups, group, report && p.status != nullptr);
    const u32 size = static_cast<u32>(end - start);
    const Share of_rows = share_of_warp((size + 127) / 128 * 128);
    const Share of_blocks = share_of_warp(((size + block - 1) / block + 3) / 4 * 4);
    if (group < p.groups) {
      table.ends[group] = end;
      table.padded_rows[group] = rows_before + of_rows.before;
      table.padded_blocks[group] = blocks_before + of_blocks.before;
    }
    rows_before += of_rows.all;
    blocks_before += of_blocks.all;
  }
  if (lane == 0) {
    table.count = p.groups;
    table.all_rows = rows_before;
    table.all_blocks = blocks_before;
  }
}

}  // namespace mxjit
