// Every MX quantize kernel compiles for every target without spills. Skipped where there is no NVRTC.
#include <gtest/gtest.h>

#include "codegen/descriptor.hpp"
#include "compile/nvrtc.hpp"
#include "configure/configure.hpp"
#include "mxjit/error.hpp"

namespace mxjit {
namespace {

struct Case {
  const char* input;
  const char* block;
  const char* axes;
};

class QuantizeKernels : public testing::TestWithParam<Case> {};

TEST_P(QuantizeKernels, CompileWithoutSpills) {
  std::shared_ptr<compile::Nvrtc> nvrtc;
  try {
    nvrtc = compile::Nvrtc::open();
  } catch (const Error& error) {
    GTEST_SKIP() << "no NVRTC here: " << error.what();
  }
  const Case& parameter = GetParam();
  int variant = 0;
  for (const char* target : {"sm_90a", "sm_100a", "sm_103a", "sm_120a"}) {
    for (const char* layout : {"plain", "blocked"}) {
      const char* rounding = std::array{"rceil", "floor", "ceil", "even"}[variant % 4];
      const char* format = std::array{"e4m3", "e5m2"}[variant / 2 % 2];
      ++variant;
      const problem::Problem problem = problem::parse(
          std::string(R"({"schema": 1, "op": "quantize", "scaling": "mx", "input": {"dtype": ")") +
          parameter.input + R"(", "shape": [{"min": 1, "max": 1048576}, 5120]}, "block": )" +
          parameter.block + R"(, "axes": )" + parameter.axes + R"(, "rounding": ")" + rounding +
          R"(", "format": ")" + format + R"(", "scale_layout": ")" + layout + "\"}");
      for (const auto& configuration : configure::configure(problem, configure::default_profile(target))) {
        const codegen::KernelDescriptor descriptor = {configuration, target};
        const compile::Compiled compiled = nvrtc->compile(descriptor);
        EXPECT_EQ(compiled.resources.spill_bytes, 0) << codegen::print(descriptor);
        EXPECT_EQ(compiled.resources.stack_bytes, 0) << codegen::print(descriptor);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Mx, QuantizeKernels,
    testing::Values(Case{"bf16", "32", R"(["row"])"}, Case{"bf16", "32", R"(["col"])"},
                    Case{"bf16", "32", R"(["row", "col"])"}, Case{"bf16", "128", R"(["row", "col"])"},
                    Case{"bf16", "[32, 32]", R"(["row", "col"])"},
                    Case{"bf16", "[128, 128]", R"(["row", "col"])"}, Case{"bf16", "[32, 32]", R"(["row"])"},
                    Case{"fp16", "32", R"(["row", "col"])"}, Case{"fp16", "128", R"(["row"])"},
                    Case{"fp32", "32", R"(["row", "col"])"}, Case{"fp32", "[128, 128]", R"(["row", "col"])"},
                    Case{"fp32", "32", R"(["row"])"}));

}  // namespace
}  // namespace mxjit
