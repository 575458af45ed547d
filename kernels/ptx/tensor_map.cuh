// The descriptor of a tensor for the bulk copy engine, as the host writes it.
#pragma once

#include "ptx/types.cuh"

namespace mxjit::ptx {

/// A CUtensorMap, opaque.
struct alignas(64) TensorMap {
  u64 words[16];
};

}  // namespace mxjit::ptx
