// As kernels/ptx/async_copy.cuh. A copy lands when its group is waited for, so that nobody counts on less.
#pragma once

#include "ptx/memory.cuh"

namespace mxjit::ptx {

class CopyTarget {
 public:
  explicit CopyTarget(void* start) : start_(static_cast<u8*>(start)) {}

  void copy_16(u32 offset, const void* from, bool read) const {
    Vector4 value{};
    if (read) value = emulation::load<Vector4>("cp.async", from);
    *reinterpret_cast<Vector4*>(start_ + offset) = value;
  }

 private:
  u8* start_;
};

inline void copy_async_commit() {}

template <int pending>
void copy_async_wait() {}

}  // namespace mxjit::ptx
