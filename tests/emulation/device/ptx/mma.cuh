// As kernels/ptx/mma.cuh.
#pragma once

#include "numbers.hpp"
#include "ptx/types.cuh"

namespace mxjit::ptx {

inline void mma_bf16(float (&d)[4], const u32 (&a)[4], const u32 (&b)[2]) {
  struct Fragments {
    u32 a[4], b[2];
  };
  const Fragments mine{{a[0], a[1], a[2], a[3]}, {b[0], b[1]}};
  const auto* lanes = static_cast<const Fragments*>(mxjit_services->exchange("mma", &mine, sizeof mine));
  const auto half = [](u32 pair, int k) {
    return static_cast<float>(emulation::widen_ieee(pair >> 16 * (k % 2) & 0xFFFF, emulation::bf16));
  };
  // Lane l holds rows l / 4 (and 8 below) of A and D, column l / 4 of B; along K and N two neighbours each.
  const u32 lane = threadIdx.x % 32;
  for (u32 e = 0; e < 4; ++e) {
    const u32 row = lane / 4, column = lane % 4 * 2 + e % 2;
    for (u32 k = 0; k < 16; ++k) {
      const u32 of_a = lanes[row * 4 + k % 8 / 2].a[e / 2 + k / 8 * 2];
      const u32 of_b = lanes[column * 4 + k % 8 / 2].b[k / 8];
      d[e] += half(of_a, static_cast<int>(k)) * half(of_b, static_cast<int>(k));
    }
  }
}

}  // namespace mxjit::ptx
