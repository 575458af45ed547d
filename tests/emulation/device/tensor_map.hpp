// What the emulated driver writes into a CUtensorMap and the emulated copy engine reads.
#pragma once

namespace mxjit::emulation {

/// Of up to four dimensions; those that are not used are of extent 1.
struct EmulatedMap {
  unsigned char* base;
  unsigned long long extents[4];  // of the first dimension, elements in line
  unsigned long long pitches[4];  // bytes from one to the next
  unsigned box[4];
  unsigned element;  // bytes
  unsigned swizzle;  // bytes of an atom's rows: 0, 32, 64 or 128
};
static_assert(sizeof(EmulatedMap) <= 128);

/// Where byte `at` of a box lies under `swizzle`: the 16-byte piece is exchanged by the bits of the 128-byte
/// row.
inline unsigned swizzled(unsigned at, unsigned swizzle) {
  if (swizzle < 32) return at;
  return at ^ ((at >> 7 & (swizzle / 16 - 1)) << 4);
}

}  // namespace mxjit::emulation
