// As kernels/ptx/mbarrier.cuh. A barrier's 64 bits: 15 of the arrivals a phase takes, 15 of those still to
// come, 33 of bytes still to come, the phase's parity on top.
#pragma once

#include "ptx/shared.cuh"
#include "ptx/types.cuh"

namespace mxjit::emulation {

struct Barrier {
  u64 arrivals : 15;
  u64 pending : 15;
  u64 bytes : 33;  // modulo 2^33: bytes may come before they are expected
  u64 parity : 1;

  void settle() {
    if (pending != 0 || bytes != 0) return;
    pending = arrivals;
    parity = parity + 1;
  }
};
static_assert(sizeof(Barrier) == sizeof(u64));

inline Barrier& barrier(u64* at) { return *reinterpret_cast<Barrier*>(at); }

inline void arrive(u64* at, u32 bytes) {
  Barrier& b = barrier(at);
  if (b.pending == 0) mxjit_services->fail("mbarrier: more arrivals than a phase takes");
  b.bytes = b.bytes + bytes;
  b.pending = b.pending - 1;
  b.settle();
}
inline void complete(u64* at, u32 bytes) {
  Barrier& b = barrier(at);
  b.bytes = b.bytes - bytes;
  b.settle();
}

}  // namespace mxjit::emulation

namespace mxjit::ptx {

inline void mbarrier_init(u64* barrier, u32 arrivals) {
  if (reinterpret_cast<u64>(barrier) % 8 != 0) mxjit_services->fail("mbarrier: not aligned to 8 bytes");
  emulation::barrier(barrier) = {arrivals, arrivals, 0, 0};
}
inline void mbarrier_init_fence() {}
inline void mbarrier_arrive_expect(u64* barrier, u32 bytes) { emulation::arrive(barrier, bytes); }
inline void mbarrier_arrive(u64* barrier) { emulation::arrive(barrier, 0); }
inline void mbarrier_wait(u64* barrier, u32 parity) {
  mxjit_services->wait(
      "mbarrier",
      [](const void* state, unsigned waited) {
        return static_cast<const emulation::Barrier*>(state)->parity != waited;
      },
      barrier, parity);
}

}  // namespace mxjit::ptx
