// As kernels/ptx/tma.cuh. Copies are done at once: nothing shows a barrier or a commit that is missing on the
// way in, but what must wait for them finds the barriers' counts wrong.
#pragma once

#include "ptx/mbarrier.cuh"
#include "ptx/tensor_map.cuh"
#include "ptx/types.cuh"
#include "tensor_map.hpp"

namespace mxjit::emulation {

inline const EmulatedMap& map_of(const ptx::TensorMap* map) {
  return *reinterpret_cast<const EmulatedMap*>(map);
}

inline u32 elements(const EmulatedMap& map) { return map.box[0] * map.box[1] * map.box[2] * map.box[3]; }

/// Where a box starts.
struct Corner {
  i32 at[4];
};

/// Calls visit(element of the box in shared memory, element in device memory or null outside the tensor,
/// whose rows are `width` elements here).
template <class Visit>
void for_each_element(const EmulatedMap& map, u64 width, u8* shared, const Corner& corner, Visit&& visit) {
  const u32 address = ptx::shared_address(shared);
  if (address % (map.swizzle == 0 ? 128 : map.swizzle * 8) != 0)
    mxjit_services->fail("bulk copy: the box is not aligned to its swizzle atom");
  const u32 count = elements(map);
  for (u32 i = 0; i < count; ++i) {
    bool inside = true;
    u8* global = map.base;
    for (u32 dimension = 0, rest = i; dimension < 4; rest /= map.box[dimension++]) {
      const i64 at = i64{corner.at[dimension]} + rest % map.box[dimension];
      inside = inside && at >= 0 && at < static_cast<i64>(dimension == 0 ? width : map.extents[dimension]);
      global += at * static_cast<i64>(map.pitches[dimension]);
    }
    if (inside) mxjit_services->check("bulk copy", global, 1);
    visit(shared + swizzled(i * map.element, map.swizzle), inside ? global : nullptr);
  }
}

inline void load(void* to, const ptx::TensorMap* map, u64* barrier, const Corner& corner) {
  const EmulatedMap& m = map_of(map);
  for_each_element(m, m.extents[0], static_cast<u8*>(to), corner, [&](u8* shared, const u8* global) {
    for (u32 b = 0; b < m.element; ++b) shared[b] = global == nullptr ? 0 : global[b];
  });
  complete(barrier, elements(m) * m.element);
}

}  // namespace mxjit::emulation

namespace mxjit::ptx {

inline void tma_prefetch(const TensorMap*) {}
inline void tma_load_2d(void* to, const TensorMap* map, u64* barrier, i32 x, i32 y) {
  emulation::load(to, map, barrier, {{x, y, 0, 0}});
}
inline void tma_load_4d(void* to, const TensorMap* map, u64* barrier, i32 x, i32 y, i32 z, i32 w) {
  emulation::load(to, map, barrier, {{x, y, z, w}});
}
inline void tma_store_2d(const TensorMap* map, const void* from, i32 x, i32 y) {
  const emulation::EmulatedMap& m = emulation::map_of(map);
  // An H200 writes whole pieces of 16 bytes, over the end of a row that is no multiple of them.
  const u64 piece = 16 / m.element, width = (m.extents[0] + piece - 1) / piece * piece;
  emulation::for_each_element(m, width, const_cast<u8*>(static_cast<const u8*>(from)), {{x, y, 0, 0}},
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
