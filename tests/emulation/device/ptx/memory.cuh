// As kernels/ptx/memory.cuh.
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

namespace mxjit::emulation {

template <class T>
T load(const char* what, const void* address) {
  mxjit_services->check(what, address, sizeof(T));
  return *static_cast<const T*>(address);
}
template <class T>
void store(const char* what, void* address, T value) {
  mxjit_services->check(what, address, sizeof(T));
  *static_cast<T*>(address) = value;
}

inline u32 lane() { return threadIdx.x % 32; }
inline const u32* exchange(const char* what, u32 value) {
  return static_cast<const u32*>(mxjit_services->exchange(what, &value, sizeof value));
}

}  // namespace mxjit::emulation

namespace mxjit::ptx {

inline Vector4 ld_nc_v4(const void* address) { return emulation::load<Vector4>("ld.v4", address); }
inline Vector4 ld_nc_v4_if(bool condition, const void* address) {
  return condition ? ld_nc_v4(address) : Vector4{};
}
inline Vector2 ld_nc_v2(const void* address) { return emulation::load<Vector2>("ld.v2", address); }
inline u8 ld_nc_u8(const void* address) { return emulation::load<u8>("ld.u8", address); }
inline u16 ld_nc_u16(const void* address) { return emulation::load<u16>("ld.u16", address); }
inline u32 ld_nc_u32(const void* address) { return emulation::load<u32>("ld.u32", address); }

inline u32 ld_relaxed(const u32* address) { return emulation::load<u32>("ld.relaxed", address); }
inline double ld_relaxed(const double* address) { return emulation::load<double>("ld.relaxed", address); }
inline u32 ld_acquire(const u32* address) { return emulation::load<u32>("ld.acquire", address); }
// Blocks run one after the other: what has not come yet never will.
inline void nanosleep(u32) { mxjit_services->fail("waits for a block that has not run"); }

inline void st_global(void* address, Vector4 v) { emulation::store("st.v4", address, v); }
inline void st_global(void* address, Vector2 v) { emulation::store("st.v2", address, v); }
inline void st_global(void* address, u32 v) { emulation::store("st.u32", address, v); }
inline void st_global(void* address, u16 v) { emulation::store("st.u16", address, v); }
inline void st_global(void* address, u8 v) { emulation::store("st.u8", address, v); }

inline u32 shfl_xor(u32 value, u32 mask) {
  return emulation::exchange("shfl.bfly", value)[emulation::lane() ^ mask];
}
inline double shfl_xor(double value, u32 mask) {
  const u64 bits = __builtin_bit_cast(u64, value);
  const u64 low = shfl_xor(static_cast<u32>(bits), mask), high = shfl_xor(static_cast<u32>(bits >> 32), mask);
  return __builtin_bit_cast(double, high << 32 | low);
}
inline u32 shfl_up(u32 value, u32 distance) {
  const u32 lane = emulation::lane();
  return emulation::exchange("shfl.up", value)[lane >= distance ? lane - distance : lane];
}
inline u32 shfl(u32 value, u32 lane) { return emulation::exchange("shfl.idx", value)[lane % 32]; }
inline float shfl(float value, u32 lane) {
  return __builtin_bit_cast(float, shfl(__builtin_bit_cast(u32, value), lane));
}
inline double shfl(double value, u32 lane) {
  const u64 bits = __builtin_bit_cast(u64, value);
  const u64 low = shfl(static_cast<u32>(bits), lane), high = shfl(static_cast<u32>(bits >> 32), lane);
  return __builtin_bit_cast(double, high << 32 | low);
}
inline bool any(bool condition) {
  const auto all = emulation::exchange("vote.any", u32{condition});
  bool found = false;
  for (u32 lane = 0; lane < 32; ++lane) found = found || all[lane] != 0;
  return found;
}

}  // namespace mxjit::ptx
