#include "bench/device_source.hpp"

namespace mxjit::bench {

const char* const device_source = R"CUDA(
using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;

template <bool streaming>
__device__ inline uint4 load(const uint4* at) {
  if (!streaming) return *at;
  uint4 v;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(at));
  return v;
}
template <bool streaming>
__device__ inline void store(uint4* at, uint4 v) {
  if (!streaming) {
    *at = v;
    return;
  }
  asm volatile("st.global.cs.v4.u32 [%0], {%1, %2, %3, %4};"
               :: "l"(at), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w) : "memory");
}

// A block copies `unroll` vectors a thread: all loads in flight before the first store.
template <int unroll, bool streaming>
__device__ inline void copy_span(const uint4* in, uint4* out, u64 vectors) {
  const u64 first = u64(blockIdx.x) * blockDim.x * unroll + threadIdx.x;
  uint4 held[unroll];
#pragma unroll
  for (int i = 0; i < unroll; ++i) {
    const u64 at = first + u64(i) * blockDim.x;
    if (at < vectors) held[i] = load<streaming>(in + at);
  }
#pragma unroll
  for (int i = 0; i < unroll; ++i) {
    const u64 at = first + u64(i) * blockDim.x;
    if (at < vectors) store<streaming>(out + at, held[i]);
  }
}

extern "C" __global__ void copy_4(const uint4* in, uint4* out, u64 vectors) { copy_span<4, false>(in, out, vectors); }
extern "C" __global__ void copy_8(const uint4* in, uint4* out, u64 vectors) { copy_span<8, false>(in, out, vectors); }
extern "C" __global__ void copy_4_streaming(const uint4* in, uint4* out, u64 vectors) {
  copy_span<4, true>(in, out, vectors);
}
extern "C" __global__ void copy_8_streaming(const uint4* in, uint4* out, u64 vectors) {
  copy_span<8, true>(in, out, vectors);
}

extern "C" __global__ void empty() {}

// `rows` spans of `width` bytes, `pitch` apart, one after the other.
extern "C" __global__ void gather(const unsigned char* from, unsigned char* to, u64 rows, u64 width, u64 pitch) {
  const u64 at = u64(blockIdx.x) * blockDim.x + threadIdx.x;
  if (at < rows * width) to[at] = from[at / width * pitch + at % width];
}

__device__ inline u32 mix(u64 z) {  // splitmix64
  z += 0x9E3779B97F4A7C15ull;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return u32((z ^ (z >> 31)) >> 32);
}
__device__ inline u16 to_bf16(float f) {
  const u32 bits = __float_as_uint(f);
  return u16((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}

// Standard normal bf16 values, two a thread (Box-Muller).
extern "C" __global__ void fill_normal(u16* out, u64 elements, u64 seed) {
  const u64 pair = u64(blockIdx.x) * blockDim.x + threadIdx.x;
  const u64 at = 2 * pair;
  if (at >= elements) return;
  const float u = (float(mix(seed + at) >> 8) + 1.0f) * (1.0f / 16777216.0f);
  const float v = float(mix(seed + at + 1) >> 8) * (1.0f / 16777216.0f);
  const float radius = sqrtf(-2.0f * __logf(u));
  float sine, cosine;
  sincospif(2.0f * v, &sine, &cosine);
  out[at] = to_bf16(radius * cosine);
  if (at + 1 < elements) out[at + 1] = to_bf16(radius * sine);
}
)CUDA";

}  // namespace mxjit::bench
