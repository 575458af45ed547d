// Loads, stores, shuffles: one wrapper per instruction. None has a cache hint: lines that are to leave the
// cache first displace each other and leave what other kernels left there, which costs 2 to 8 %
// (tools/bench/README.md).
#pragma once

#include "ptx/types.cuh"

namespace mxjit {

struct alignas(16) Vector4 {
  u32 x, y, z, w;
};

struct alignas(8) Vector2 {
  u32 x, y;
};

}  // namespace mxjit

namespace mxjit::ptx {

/// 16 bytes that this kernel never writes.
__device__ __forceinline__ Vector4 ld_nc_v4(const void* address) {
  Vector4 v;
  asm("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];"
      : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
      : "l"(address));
  return v;
}

/// Those, or zeros: never a branch.
__device__ __forceinline__ Vector4 ld_nc_v4_if(bool condition, const void* address) {
  Vector4 v;
  asm("{ .reg .pred p;\n setp.ne.u32 p, %5, 0;\n mov.u32 %0, 0;\n mov.u32 %1, 0;\n mov.u32 %2, 0;\n"
      " mov.u32 %3, 0;\n @p ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4]; }"
      : "=&r"(v.x), "=&r"(v.y), "=&r"(v.z), "=&r"(v.w)
      : "l"(address), "r"(u32{condition}));
  return v;
}

/// 8 bytes, likewise.
__device__ __forceinline__ Vector2 ld_nc_v2(const void* address) {
  Vector2 v;
  asm("ld.global.nc.v2.u32 {%0, %1}, [%2];" : "=r"(v.x), "=r"(v.y) : "l"(address));
  return v;
}

__device__ __forceinline__ u8 ld_nc_u8(const void* address) {
  u32 v;
  asm("ld.global.nc.u8 %0, [%1];" : "=r"(v) : "l"(address));
  return static_cast<u8>(v);
}

__device__ __forceinline__ u16 ld_nc_u16(const void* address) {
  u16 v;
  asm("ld.global.nc.u16 %0, [%1];" : "=h"(v) : "l"(address));
  return v;
}

__device__ __forceinline__ u32 ld_nc_u32(const void* address) {
  u32 v;
  asm("ld.global.nc.u32 %0, [%1];" : "=r"(v) : "l"(address));
  return v;
}

/// What other thread blocks may have written in this kernel, as it is now.
__device__ __forceinline__ u32 ld_relaxed(const u32* address) {
  u32 v;
  asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(address) : "memory");
  return v;
}

__device__ __forceinline__ double ld_relaxed(const double* address) {
  double v;
  asm volatile("ld.relaxed.gpu.global.f64 %0, [%1];" : "=d"(v) : "l"(address) : "memory");
  return v;
}

/// Likewise, and what the writer had written before is seen from here on.
__device__ __forceinline__ u32 ld_acquire(const u32* address) {
  u32 v;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(address) : "memory");
  return v;
}

/// Leaves the multiprocessor to others, for about `nanoseconds`.
__device__ __forceinline__ void nanosleep(u32 nanoseconds) {
  asm volatile("nanosleep.u32 %0;" ::"r"(nanoseconds));
}

/// 16, 8, 4, 2 and 1 bytes.
__device__ __forceinline__ void st_global(void* address, Vector4 v) {
  asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(address), "r"(v.x), "r"(v.y), "r"(v.z),
               "r"(v.w)
               : "memory");
}

__device__ __forceinline__ void st_global(void* address, Vector2 v) {
  asm volatile("st.global.v2.u32 [%0], {%1, %2};" ::"l"(address), "r"(v.x), "r"(v.y) : "memory");
}

__device__ __forceinline__ void st_global(void* address, u32 v) {
  asm volatile("st.global.u32 [%0], %1;" ::"l"(address), "r"(v) : "memory");
}

__device__ __forceinline__ void st_global(void* address, u16 v) {
  asm volatile("st.global.u16 [%0], %1;" ::"l"(address), "h"(v) : "memory");
}

__device__ __forceinline__ void st_global(void* address, u8 v) {
  asm volatile("st.global.u8 [%0], %1;" ::"l"(address), "r"(u32{v}) : "memory");
}

/// The value of the lane whose index differs by `mask`; every lane of the warp takes part.
__device__ __forceinline__ u32 shfl_xor(u32 value, u32 mask) {
  u32 result;
  asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 31, 0xffffffff;" : "=r"(result) : "r"(value), "r"(mask));
  return result;
}

__device__ __forceinline__ double shfl_xor(double value, u32 mask) {
  double result;
  asm volatile(
      "{ .reg .b32 low, high;\n mov.b64 {low, high}, %1;\n"
      " shfl.sync.bfly.b32 low, low, %2, 31, 0xffffffff;\n"
      " shfl.sync.bfly.b32 high, high, %2, 31, 0xffffffff;\n mov.b64 %0, {low, high}; }"
      : "=d"(result)
      : "d"(value), "r"(mask));
  return result;
}

/// The value of the lane `distance` below; the lowest lanes keep their own.
__device__ __forceinline__ u32 shfl_up(u32 value, u32 distance) {
  u32 result;
  asm volatile("shfl.sync.up.b32 %0, %1, %2, 0, 0xffffffff;" : "=r"(result) : "r"(value), "r"(distance));
  return result;
}

/// The value of lane `lane`.
__device__ __forceinline__ u32 shfl(u32 value, u32 lane) {
  u32 result;
  asm volatile("shfl.sync.idx.b32 %0, %1, %2, 31, 0xffffffff;" : "=r"(result) : "r"(value), "r"(lane));
  return result;
}

__device__ __forceinline__ float shfl(float value, u32 lane) {
  return __uint_as_float(shfl(__float_as_uint(value), lane));
}

__device__ __forceinline__ double shfl(double value, u32 lane) {
  double result;
  asm volatile(
      "{ .reg .b32 low, high;\n mov.b64 {low, high}, %1;\n"
      " shfl.sync.idx.b32 low, low, %2, 31, 0xffffffff;\n"
      " shfl.sync.idx.b32 high, high, %2, 31, 0xffffffff;\n mov.b64 %0, {low, high}; }"
      : "=d"(result)
      : "d"(value), "r"(lane));
  return result;
}

/// Whether some lane's `condition` holds; every lane of the warp takes part.
__device__ __forceinline__ bool any(bool condition) {
  u32 result;
  asm volatile(
      "{ .reg .pred p;\n setp.ne.u32 p, %1, 0;\n vote.sync.any.pred p, p, 0xffffffff;\n"
      " selp.u32 %0, 1, 0, p; }"
      : "=r"(result)
      : "r"(u32{condition}));
  return result != 0;
}

}  // namespace mxjit::ptx
