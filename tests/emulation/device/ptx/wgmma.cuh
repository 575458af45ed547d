// As kernels/ptx/wgmma.cuh: each thread multiplies at once, in fp32; a group is finished when all threads of
// the warpgroup have come to it.
#pragma once

#include "numbers.hpp"
#include "ptx/shared.cuh"
#include "ptx/types.cuh"
#include "tensor_map.hpp"

namespace mxjit::emulation {

inline u32 committed[1024];  // groups, by thread

}  // namespace mxjit::emulation

namespace mxjit::ptx {

inline u64 wgmma_descriptor(u32 shared_address) { return (shared_address & 0x3ffff) >> 4; }
inline void wgmma_fence() {}
inline void wgmma_commit() { ++emulation::committed[threadIdx.x]; }
template <int pending>
void wgmma_wait() {
  mxjit_services->wait(
      "wgmma",
      [](const void* state, unsigned group) {
        for (u32 i = 0; i < 128; ++i)
          if (static_cast<i32>(static_cast<const u32*>(state)[i] - group) < 0) return false;
        return true;
      },
      emulation::committed + threadIdx.x / 128 * 128, emulation::committed[threadIdx.x] - pending);
}
template <int count>
void wgmma_pin(float (&)[count]) {}

enum class WgmmaTypes { e4m3_e4m3, e4m3_e5m2, e5m2_e4m3, e5m2_e5m2 };

template <WgmmaTypes types, int n>
struct Wgmma {
  static void run(float (&d)[n / 2], u64 a, u64 b, bool accumulate) {
    constexpr bool a_e4m3 = types == WgmmaTypes::e4m3_e4m3 || types == WgmmaTypes::e4m3_e5m2;
    constexpr bool b_e4m3 = types == WgmmaTypes::e4m3_e4m3 || types == WgmmaTypes::e5m2_e4m3;
    const u32 thread = threadIdx.x % 128, row = thread / 32 * 16 + thread % 32 / 4;
    for (int i = 0; i < n / 2; ++i) {
      const u32 r = row + static_cast<u32>(i / 2 % 2) * 8,
                c = static_cast<u32>(i / 4 * 8 + i % 2) + thread % 4 * 2;
      float sum = 0;
      for (u32 k = 0; k < 32; ++k) sum += value<a_e4m3>(element(a, r, k)) * value<b_e4m3>(element(b, c, k));
      d[i] = accumulate ? d[i] + sum : sum;
    }
  }

 private:
  // Rows of 128 bytes, eight to an atom of 1024 bytes; the swizzle goes by the address.
  static u8 element(u64 descriptor, u32 row, u32 k) {
    const u32 start = static_cast<u32>(descriptor) << 4;
    return dynamic_shared()[emulation::swizzled(start + row * 128 + k, 128)];
  }

  template <bool is_e4m3>
  static float value(u8 byte) {
    static const Table table(is_e4m3);
    return table.values[byte];
  }
  struct Table {
    float values[256];
    explicit Table(bool is_e4m3) {
      for (u32 i = 0; i < 256; ++i)
        values[i] = static_cast<float>(is_e4m3 ? emulation::widen_e4m3(i) : emulation::widen_e5m2(i));
    }
  };
};

}  // namespace mxjit::ptx
