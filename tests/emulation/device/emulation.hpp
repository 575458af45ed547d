// CUDA C++ for the host compiler: what a kernel's source expects of the language and of the device, for one
// thread of an emulated grid. Included before every emulated source.
#pragma once

#include "services.hpp"

#define __device__
#define __global__
#define __forceinline__ inline
#define __grid_constant__
#define __launch_bounds__(...)
#define __align__(bytes) alignas(bytes)
// One thread block runs at a time, so its static shared variables can be the program's.
#define __shared__ static

// Set by the emulator: once, and for each thread before it runs.
extern "C" {
__attribute__((visibility("default"))) const mxjit::emulation::Services* mxjit_services;
__attribute__((visibility("default"))) mxjit::emulation::Index threadIdx, blockIdx, blockDim, gridDim;
}

struct float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};

inline void __syncthreads() { mxjit_services->barrier(0, 0); }
inline void __syncwarp() {
  const unsigned nothing = 0;
  mxjit_services->exchange("__syncwarp", &nothing, sizeof nothing);
}
inline float __uint_as_float(unsigned bits) { return __builtin_bit_cast(float, bits); }
inline unsigned __float_as_uint(float value) { return __builtin_bit_cast(unsigned, value); }
inline int __float_as_int(float value) { return __builtin_bit_cast(int, value); }
inline float __int_as_float(int bits) { return __builtin_bit_cast(float, bits); }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __frcp_rn(float a) { return 1.0f / a; }
inline float __fmaf_rn(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
inline float __fsqrt_rn(float a) { return __builtin_sqrtf(a); }
inline double __ddiv_rn(double a, double b) { return a / b; }
inline float fmaxf(float a, float b) { return __builtin_fmaxf(a, b); }
inline float fminf(float a, float b) { return __builtin_fminf(a, b); }
inline float expf(float a) { return __builtin_expf(a); }
inline double sqrt(double a) { return __builtin_sqrt(a); }
inline double exp(double a) { return __builtin_exp(a); }
inline int __ffs(int a) { return __builtin_ffs(a); }
inline float fabsf(float a) { return __builtin_fabsf(a); }

template <class T>
T __ldg(const T* address) {
  mxjit_services->check("__ldg", address, sizeof(T));
  return *address;
}

// Threads change places only where they wait, so that read-modify-write is whole.
template <class T>
T atomicCAS(T* address, T expected, T desired) {
  mxjit_services->check("atomicCAS", address, sizeof(T));
  const T old = *address;
  if (old == expected) *address = desired;
  return old;
}
template <class T>
T atomicAdd(T* address, T value) {
  mxjit_services->check("atomicAdd", address, sizeof(T));
  const T old = *address;
  *address = old + value;
  return old;
}
template <class T>
T atomicMax(T* address, T value) {
  mxjit_services->check("atomicMax", address, sizeof(T));
  const T old = *address;
  if (value > old) *address = value;
  return old;
}
inline void __threadfence() {}
