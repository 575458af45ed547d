// As kernels/ptx/tma.cuh. Copies are done at once: nothing shows a barrier or a commit that is missing on the
// way in, but what must wait for them finds the barriers' counts wrong.
#pragma once

#include "ptx/mbarrier.cuh"
#include "ptx/tensor_map.cuh"
#include "ptx/types.cuh"
#include "tensor_map.hpp"

namespace mxjit::emulation {

inline const TensorMap2d& map_of(const ptx::TensorMap* map) {
  return *reinterpret_cast<const TensorMap2d*>(map);
}

/// Calls visit(element of the box in shared memory, element in device memory or null outside the tensor,
/// whose rows are `width` elements here).
template <class Visit>
void for_each_element(const TensorMap2d& map, u64 width, u8* shared, i32 x, i32 y, Visit&& visit) {
  const u32 address = ptx::shared_address(shared);
  if (address % (map.swizzle == 0 ? 128 : map.swizzle * 8) != 0)
    mxjit_services->fail("bulk copy: the box is not aligned to its swizzle atom");
  for (u32 row = 0; row < map.box[1]; ++row)
    for (u32 column = 0; column < map.box[0]; ++column) {
      const i64 at_x = i64{x} + column, at_y = i64{y} + row;
      const bool inside =
          at_x >= 0 && at_y >= 0 && at_x < static_cast<i64>(width) && at_y < static_cast<i64>(map.extents[1]);
      u8* global = inside ? map.base + at_y * static_cast<i64>(map.pitch) + at_x * map.element : nullptr;
      if (inside) mxjit_services->check("bulk copy", global, 1);
      visit(shared + swizzled((row * map.box[0] + column) * map.element, map.swizzle), global);
    }
}

}  // namespace mxjit::emulation

namespace mxjit::ptx {

inline void tma_prefetch(const TensorMap*) {}
inline void tma_load_2d(void* to, const TensorMap* map, u64* barrier, i32 x, i32 y) {
  const emulation::TensorMap2d& m = emulation::map_of(map);
  emulation::for_each_element(m, m.extents[0], static_cast<u8*>(to), x, y, [&](u8* shared, const u8* global) {
    for (u32 b = 0; b < m.element; ++b) shared[b] = global == nullptr ? 0 : global[b];
  });
  emulation::complete(barrier, m.box[0] * m.box[1] * m.element);
}
inline void tma_store_2d(const TensorMap* map, const void* from, i32 x, i32 y) {
  const emulation::TensorMap2d& m = emulation::map_of(map);
  // An H200 writes whole pieces of 16 bytes, over the end of a row that is no multiple of them.
  const u64 piece = 16 / m.element, width = (m.extents[0] + piece - 1) / piece * piece;
  emulation::for_each_element(m, width, const_cast<u8*>(static_cast<const u8*>(from)), x, y,
                              [&](const u8* shared, u8* global) {
                                if (global == nullptr) return;
                                for (u32 b = 0; b < m.element; ++b) global[b] = shared[b];
                              });
}
inline void tma_store_commit() {}
template <int pending>
void tma_store_wait_read() {}
inline void tma_store_fence() {}

}  // namespace mxjit::ptx
