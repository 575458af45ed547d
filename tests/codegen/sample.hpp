// A descriptor to test with; the template it names exists in the tests only.
#pragma once

#include "codegen/descriptor.hpp"

namespace mxjit::test {

inline codegen::KernelDescriptor sample() {
  codegen::KernelDescriptor descriptor;
  descriptor.target = "sm_90a";
  descriptor.configuration.kernel = "tiny/scale_add";
  descriptor.configuration.constants = {{"columns", std::int64_t{4}},
                                        {"big", std::int64_t{1} << 40},
                                        {"twice", true},
                                        {"mode", std::string("TinyMode::add")}};
  descriptor.configuration.threads = 128;
  descriptor.configuration.min_blocks = 2;
  descriptor.configuration.shared_bytes = 1024;
  return descriptor;
}

/// The template that sample() names.
inline constexpr std::string_view sample_template = R"(#pragma once
namespace mxjit {
enum class TinyMode { add, subtract };
struct TinyScaleAdd {
  struct Params { float* x; float a; int n; };
  template <class Config>
  static __device__ void run(const Params& params) {
    const int i = static_cast<int>(blockIdx.x) * Config::threads + static_cast<int>(threadIdx.x);
    if (i >= params.n) return;
    float value = params.x[i] * (Config::twice ? 2.0f : 1.0f);
    value += Config::mode == TinyMode::add ? params.a : -params.a;
    params.x[i] = value * Config::columns;
  }
};
}  // namespace mxjit
)";

}  // namespace mxjit::test
