// Largest magnitudes, as bits: they sort as the magnitudes do, infinity and then NaN above all numbers.
#pragma once

#include "ptx/memory.cuh"
#include "ptx/types.cuh"

namespace mxjit {

__device__ __forceinline__ u32 magnitude(float value) { return __float_as_uint(value) & 0x7FFFFFFF; }

/// Of a warp.
__device__ __forceinline__ u32 warp_amax(u32 bits) {
#pragma unroll
  for (u32 mask = 16; mask > 0; mask /= 2) {
    const u32 other = ptx::shfl_xor(bits, mask);
    bits = other > bits ? other : bits;
  }
  return bits;
}

/// Raises `amax` to a warp's largest. The order of the warps does not matter.
__device__ __forceinline__ void raise_amax(u32* amax, u32 bits) {
  bits = warp_amax(bits);
  if (threadIdx.x % 32 == 0) atomicMax(amax, bits);
}

}  // namespace mxjit
