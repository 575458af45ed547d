// What the emulated driver writes into a CUtensorMap and the emulated copy engine reads.
#pragma once

namespace mxjit::emulation {

struct TensorMap2d {
  unsigned char* base;
  unsigned long long extents[2];  // columns, rows
  unsigned long long pitch;       // bytes between rows
  unsigned box[2];
  unsigned element;  // bytes
  unsigned swizzle;  // bytes of an atom's rows: 0, 32, 64 or 128
};
static_assert(sizeof(TensorMap2d) <= 128);

/// Where byte `at` of a box lies under `swizzle`: the 16-byte piece is exchanged by the bits of the 128-byte
/// row.
inline unsigned swizzled(unsigned at, unsigned swizzle) {
  if (swizzle < 32) return at;
  return at ^ ((at >> 7 & (swizzle / 16 - 1)) << 4);
}

}  // namespace mxjit::emulation
