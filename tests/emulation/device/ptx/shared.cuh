// As kernels/ptx/shared.cuh. An address in shared memory is the distance from the dynamic part's start.
#pragma once

#include "ptx/types.cuh"

namespace mxjit::ptx {

inline u8* dynamic_shared() { return mxjit_services->dynamic_shared; }

inline u32 shared_address(const void* pointer) {
  return static_cast<u32>(static_cast<const u8*>(pointer) - mxjit_services->dynamic_shared);
}

inline void stmatrix_x4(u32 address, u32 a, u32 b, u32 c, u32 d) {
  struct Deposit {
    u32 address, values[4];
  };
  const Deposit mine{address, {a, b, c, d}};
  const auto* lanes = static_cast<const Deposit*>(mxjit_services->exchange("stmatrix", &mine, sizeof mine));
  if (address % 16 != 0) mxjit_services->fail("stmatrix: a row's address is no multiple of 16");
  // Lane l holds elements 2 * (l % 4) and the next of row l / 4 of every matrix.
  const u32 lane = threadIdx.x % 32;
  for (u32 matrix = 0; matrix < 4; ++matrix) {
    u8* row = dynamic_shared() + lanes[matrix * 8 + lane / 4].address;
    *reinterpret_cast<u32*>(row + lane % 4 * 4) = mine.values[matrix];
  }
}

template <int threads>
void bar_sync(int id) {
  mxjit_services->barrier(id, threads);
}

}  // namespace mxjit::ptx
