// As kernels/ptx/async_copy.cuh.
#pragma once

#include "ptx/mbarrier.cuh"
#include "ptx/memory.cuh"

namespace mxjit::ptx {

inline void copy_async_16(void* shared, const void* from, bool read) {
  Vector4 value{};
  if (read) value = emulation::load<Vector4>("cp.async", from);
  *static_cast<Vector4*>(shared) = value;
}

inline void copy_async_4(void* shared, const void* from, bool read) {
  *static_cast<u32*>(shared) = read ? emulation::load<u32>("cp.async", from) : 0;
}

inline void copy_async_arrive(u64* barrier) { emulation::arrive(barrier, 0); }

inline void copy_async_commit() {}

template <int pending>
void copy_async_wait() {}

inline void copy_async_wait_all() {}

}  // namespace mxjit::ptx
