// CUDA source of the benchmarks' own kernels.
#pragma once

namespace mxjit::bench {

/// Kernels: copy_<variant> (in, out, vectors of 16 bytes), fill_normal (out, elements, seed), empty ().
extern const char* const device_source;

}  // namespace mxjit::bench
