#include "bench/suites.hpp"

#include <array>

namespace mxjit::bench {

std::span<const Suite> suites() {
  static constexpr std::array<Suite, 4> all = {Suite{"dispatch", run_dispatch}, Suite{"compile", run_compile},
                                               Suite{"quantize", run_quantize}, Suite{"gemm", run_gemm}};
  return all;
}

}  // namespace mxjit::bench
