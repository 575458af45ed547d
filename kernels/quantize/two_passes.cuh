// Two passes over tiles in one launch.
#pragma once

#include "ptx/types.cuh"

namespace mxjit {

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
