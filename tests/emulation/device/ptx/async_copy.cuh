// As kernels/ptx/async_copy.cuh. A copy lands when its group is waited for, so that nobody counts on less.
#pragma once

#include "ptx/memory.cuh"

namespace mxjit::ptx {

inline void copy_async_16(void* shared, const void* from, bool read) {
  Vector4 value{};
  if (read) value = emulation::load<Vector4>("cp.async", from);
  *static_cast<Vector4*>(shared) = value;
}

inline void copy_async_commit() {}

template <int pending>
void copy_async_wait() {}

}  // namespace mxjit::ptx
