// As kernels/ptx/cluster.cuh: clusters are not emulated.
#pragma once

#include "ptx/types.cuh"

namespace mxjit::ptx {

inline u32 cluster_rank() {
  mxjit_services->fail("clusters are not emulated");
  return 0;
}
inline void cluster_arrive() { cluster_rank(); }
inline void cluster_wait() { cluster_rank(); }
inline void cluster_sync() { cluster_rank(); }
inline u32 map_to_rank(u32 address, u32) { return cluster_rank(), address; }

}  // namespace mxjit::ptx
