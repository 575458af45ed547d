// What kernels start with: none touches global memory before the grids ahead of it are done. Skipped where
// there is no NVRTC.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "compile/nvrtc.hpp"
#include "configure/configure.hpp"
#include "disassembler.hpp"
#include "mxjit/error.hpp"
#include "problem/problem.hpp"

namespace mxjit {
namespace {

// One kernel of every template, and its source's commonest loads.
constexpr std::array problems = {
    R"("op": "quantize", "scaling": "mx", "block": 32, "axes": ["row", "col"], "input": {"dtype": "bf16", "shape": [512, 512]})",
    R"("op": "quantize", "scaling": "fp32", "block": 128, "axes": ["row", "col"], "input": {"dtype": "bf16", "shape": [512, 512]})",
    R"("op": "quantize", "scaling": "fp32", "block": "tensor", "input": {"dtype": "bf16", "shape": [512, 512]})",
    R"("op": "quantize", "scaling": "fp32", "block": "row", "input": {"dtype": "bf16", "shape": [512, 512]})",
    R"("op": "quantize", "scaling": "mx", "block": 32, "pre": {"kind": "rmsnorm"}, "input": {"dtype": "bf16", "shape": [512, 512]})",
    R"("op": "dequantize", "scaling": "mx", "block": 32, "q": {"dtype": "e4m3", "shape": [512, 512]}, "output": {"dtype": "bf16"})",
    R"("op": "pack_scales", "scales": {"shape": [512, 16]}, "placement": "dense")",
    R"("op": "pad_groups", "input": {"dtype": "bf16", "shape": [512, 64]}, "groups": {"count": 8}, "alignment": 32)",
    R"("op": "gemm", "a": {"dtype": "e4m3", "shape": [512, 512]}, "b": {"dtype": "e4m3", "shape": [512, 512]})",
    R"("op": "gemm", "a": {"dtype": "bf16", "shape": [512, 512]}, "b": {"dtype": "bf16", "shape": [512, 512]})",
};

class Entry : public testing::Test {
 protected:
  void SetUp() override {
    try {
      nvrtc_ = compile::Nvrtc::open();
    } catch (const Error& error) {
      GTEST_SKIP() << "no NVRTC here: " << error.what();
    }
    for (const std::string body : problems)
      for (const configure::Configuration& configuration :
           configure::configure(problem::parse(R"({"schema": 1, )" + body + "}"), configure::profile("h200")))
        kernels_.emplace(configuration.kernel, codegen::KernelDescriptor{configuration, "sm_90a"});
  }

  std::shared_ptr<compile::Nvrtc> nvrtc_;
  std::map<std::string, codegen::KernelDescriptor> kernels_;  // by template
};

// `code` waits, and none of `accesses` comes before that.
void expect_waits_first(const std::string& code, const std::string& wait, const std::string& release,
                        const std::vector<std::string>& accesses, const std::string& kernel) {
  const std::size_t waits = code.find(wait);
  ASSERT_NE(waits, std::string::npos) << kernel;
  EXPECT_GT(code.find(release), waits) << kernel;
  EXPECT_NE(code.find(release), std::string::npos) << kernel;
  bool any = false;
  for (const std::string& access : accesses) {
    EXPECT_GT(code.find(access), waits) << kernel << ": " << access;
    any = any || code.find(access) != std::string::npos;
  }
  EXPECT_TRUE(any) << kernel;
}

TEST_F(Entry, KernelsWaitBeforeTheyTouchGlobalMemory) {
  EXPECT_EQ(kernels_.size(), problems.size());
  for (const auto& [name, descriptor] : kernels_) {
    const std::string ptx = nvrtc_->ptx(descriptor);
    const std::size_t body = ptx.find(".entry");
    ASSERT_NE(body, std::string::npos) << name;
    expect_waits_first(ptx.substr(body), "griddepcontrol.wait", "griddepcontrol.launch_dependents",
                       {"ld.global", "ld.relaxed", "ld.acquire", "st.global", "atom.", "red.", "cp.async.cg",
                        "cp.async.bulk.tensor", "prefetch.global"},
                       name);
  }
}

TEST_F(Entry, SoDoesTheirMachineCode) {
  const std::filesystem::path program = test::disassembler();
  if (program.empty()) GTEST_SKIP() << "no nvdisasm here (MXJIT_DISASSEMBLER names one)";
  for (const auto& [name, descriptor] : kernels_)
    expect_waits_first(test::disassemble(program, nvrtc_->compile(descriptor).cubin), "ACQBULK", "PREEXIT",
                       {"LDG", "STG", "ATOMG", "RED.", "REDG", "UTMALDG", "UTMASTG"}, name);
}

}  // namespace
}  // namespace mxjit
