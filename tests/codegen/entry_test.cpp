// What kernels start with: none touches global memory before the grids ahead of it are done. Skipped where
// there is no NVRTC.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "codegen/with_nvrtc.hpp"
#include "configure/configure.hpp"
#include "disassembler.hpp"
#include "mxjit/error.hpp"
#include "problem/problem.hpp"

namespace mxjit {
namespace {

// Problems whose kernels are of every template, with each of the options that give one more to read or to
// write.
std::vector<std::string> problems_of_every_template() {
  constexpr const char* turned = R"("dtype": "bf16", "layout": "col", "shape": [512, 1024])";
  constexpr const char* turned_fp32 = R"("dtype": "fp32", "layout": "col", "shape": [512, 1024])";
  constexpr const char* experts = R"("dtype": "bf16", "shape": [4, 512, 1024])";
  constexpr const char* long_rows = R"("dtype": "fp32", "shape": [512, 40000])";
  const auto quantize = [](const std::string& fields,
                           const std::string& input = R"("dtype": "bf16", "shape": [512, 1024])") {
    return R"("op": "quantize", "input": {)" + input + "}, " + fields;
  };
  const auto dequantize = [](const std::string& fields) {
    return R"("op": "dequantize", "q": {"dtype": "e4m3", "shape": [512, 512]}, )" + fields;
  };
  const auto scales = [](const std::string& fields) {
    return R"("scales": {"shape": [512, 16]}, )" + fields;
  };
  const auto padding = [](const std::string& fields) {
    return R"("input": {"dtype": "bf16", "shape": [512, 64]}, "groups": {"count": 8}, "alignment": 32, )" +
           fields;
  };
  constexpr const char* bf16 = R"("dtype": "bf16")";
  constexpr const char* plain = R"("dtype": "e4m3")";
  constexpr const char* of_tensor = R"("dtype": "e4m3", "scaling": {"kind": "fp32", "block": "tensor"})";
  constexpr const char* by_row = R"("dtype": "e4m3", "scaling": {"kind": "fp32", "block": "row"})";
  constexpr const char* by_block = R"("dtype": "e4m3", "scaling": {"kind": "fp32", "block": 128})";
  constexpr const char* by_square = R"("dtype": "e4m3", "scaling": {"kind": "fp32", "block": [128, 128]})";
  constexpr const char* blocked_mn =
      R"("dtype": "e4m3", "major": "mn", "scaling": {"kind": "mx", "block": 32, "layout": "blocked"})";
  const auto gemm = [](const std::string& fields, const std::string& a, const std::string& b, int m = 512,
                       int n = 512, int k = 512) {
    return fmt::format(R"("op": "gemm", "a": {{{}, "shape": [{}, {}]}}, "b": {{{}, "shape": [{}, {}]}}, {})",
                       a, m, k, b, n, k, fields);
  };
  return {
      // quantize/mx
      quantize(R"("scaling": "mx", "block": 32)"),
      quantize(R"("scaling": "mx", "block": 32, "axes": ["row", "col"], "scale_layout": "blocked")", experts),
      quantize(R"("scaling": "mx", "block": 32, "axes": ["row", "col"], "scale_layout": "blocked",
                "groups": {"count": 8, "alignment": 32})"),
      quantize(R"("scaling": "mx", "block": 32, "axes": ["col"], "emit_high": true)", turned),
      quantize(R"("scaling": "mx", "block": 32, "groups": {"count": 8})", turned),
      quantize(R"("scaling": "mx", "block": 32, "axes": ["row", "col"], "emit_high": true,
                "pre": {"kind": "swiglu", "interleave": true, "alpha": 1.702, "limit": 7})"),
      // quantize/fp32
      quantize(R"("scaling": "fp32", "block": 128, "axes": ["col"])"),
      quantize(R"("scaling": "fp32", "block": 128, "axes": ["row", "col"], "scale_layout": "mn_major",
                "emit_high": true, "pre": {"kind": "swiglu", "limit": 7})",
               experts),
      quantize(R"("scaling": "fp32", "block": [128, 128], "axes": ["col"], "groups": {"count": 8})",
               turned_fp32),
      // quantize/fp32_passes
      quantize(R"("scaling": "fp32", "block": "tensor")"),
      quantize(R"("scaling": "fp32", "block": "tensor", "axes": ["col"], "emit_high": true,
                "pre": {"kind": "swiglu", "limit": 7})",
               experts),
      quantize(R"("scaling": "fp32", "block": "row", "axes": ["row", "col"],
                "groups": {"count": 8, "alignment": 1})"),
      quantize(R"("scaling": "fp32", "block": "row", "axes": ["row", "col"],
                "groups": {"count": 8, "alignment": 1})",
               turned_fp32),
      // quantize/rows
      quantize(R"("scaling": "fp32", "block": "row")"),
      quantize(R"("scaling": "fp32", "block": "row", "groups": {"count": 8, "alignment": 1})", long_rows),
      quantize(
          R"("scaling": "fp32", "block": "row", "emit_high": true, "pre": {"kind": "swiglu", "limit": 7})"),
      quantize(R"("scaling": "fp32", "block": "row", "pre": {"kind": "rmsnorm"})"),
      quantize(R"("scaling": "mx", "block": 32, "scale_layout": "blocked", "pre": {"kind": "rmsnorm"})",
               experts),
      // quantize/norm
      quantize(R"("scaling": "mx", "block": [32, 32], "pre": {"kind": "rmsnorm"})"),
      quantize(R"("scaling": "mx", "block": 32, "axes": ["row", "col"], "scale_layout": "blocked",
                "groups": {"count": 8, "alignment": 32}, "pre": {"kind": "rmsnorm"}, "emit_high": true)",
               turned),
      quantize(R"("scaling": "fp32", "block": "tensor", "axes": ["col"], "pre": {"kind": "rmsnorm"})",
               experts),
      // quantize/dequantize
      dequantize(R"("scaling": "mx", "block": 32, "output": {"dtype": "bf16"})"),
      dequantize(R"("scaling": "mx", "block": 32, "axis": "col", "scale_layout": "blocked",
                  "groups": {"count": 8, "alignment": 32}, "output": {"dtype": "fp32"})"),
      dequantize(R"("scaling": "fp32", "block": "row", "axis": "col", "groups": {"count": 8, "alignment": 1},
                  "output": {"dtype": "bf16"})"),
      // scales/pack, groups/pad
      scales(R"("op": "pack_scales", "placement": "dense")"),
      scales(R"("op": "pack_scales", "placement": "m_groups", "groups": {"count": 8})"),
      scales(R"("op": "unpack_scales", "placement": "k_groups", "groups": {"count": 8})"),
      padding(R"("op": "pad_groups")"),
      padding(R"("op": "unpad_groups")"),
      // gemm/dense_fp8: each schedule, and what its epilogue adds
      gemm(R"("accumulation": "fast")", plain, plain, 8192, 7168, 5120),
      gemm(R"("accumulation": "fast")", by_row, by_row, 512, 7168, 5120),
      gemm(R"("accumulation": "promote")", plain, plain, 8192, 8192, 8192),
      gemm(R"("accumulation": "fast", "bias": {"dtype": "bf16"}, "beta": 0.5)", by_row, by_row),
      gemm(R"("d": {"dtype": "e4m3", "amax": true})", by_row, of_tensor),
      gemm(R"("bias": {"dtype": "fp32"})", by_block, by_square, 512, 510),
      // gemm/general
      gemm(R"("accumulation": "exact")", bf16, bf16),
      gemm(R"("bias": {"dtype": "bf16"}, "beta": 0.5, "d": {"amax": true})", blocked_mn, blocked_mn),
      gemm(R"("epilogue": {"kind": "swiglu"},
            "d": {"dtype": "e4m3", "requant": {"format": "e4m3", "scaling": "mx", "block": 32}})",
           by_block, by_square),
  };
}

std::vector<codegen::KernelDescriptor> kernels_of_every_template() {
  std::vector<codegen::KernelDescriptor> kernels;
  for (const std::string& problem : problems_of_every_template())
    for (const configure::Configuration& configuration : configure::configure(
             problem::parse(R"({"schema": 1, )" + problem + "}"), configure::profile("h200")))
      kernels.push_back({configuration, "sm_90a"});
  return kernels;
}

class Entry : public test::WithNvrtc<> {};

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

// A template is a header with a `run`.
TEST(EntryProblems, AreOfEveryTemplate) {
  std::set<std::string> templates, seen;
  for (const codegen::Template& one : codegen::templates())
    if (one.text.find("void run(const Params&") != std::string_view::npos)
      templates.emplace(one.name.substr(0, one.name.rfind('.')));
  for (const codegen::KernelDescriptor& kernel : kernels_of_every_template())
    seen.insert(kernel.configuration.kernel);
  EXPECT_EQ(seen, templates);
}

TEST(EntryProblems, HaveEveryFlagSetAndNot) {
  std::map<std::string, std::set<bool>> flags;
  for (const codegen::KernelDescriptor& kernel : kernels_of_every_template())
    for (const auto& [name, value] : kernel.configuration.constants)
      if (const bool* flag = std::get_if<bool>(&value))
        flags[kernel.configuration.kernel + " " + name].insert(*flag);
  std::set<std::string> fixed;
  for (const auto& [name, values] : flags)
    if (values.size() == 1) fixed.insert(name);
  // Groups of a transposed input are another template's; the norm has no limit.
  EXPECT_EQ(fixed, (std::set<std::string>{"quantize/norm limited", "quantize/rows groups_turned"}));
}

TEST_F(Entry, KernelsWaitBeforeTheyTouchGlobalMemory) {
  for (const codegen::KernelDescriptor& descriptor : kernels_of_every_template()) {
    const std::string name = codegen::print(descriptor);
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
  for (const codegen::KernelDescriptor& descriptor : kernels_of_every_template())
    expect_waits_first(test::disassemble(program, nvrtc_->compile(descriptor).cubin), "ACQBULK", "PREEXIT",
                       {"LDG", "STG", "ATOMG", "RED.", "REDG", "UTMALDG", "UTMASTG"},
                       codegen::print(descriptor));
}

}  // namespace
}  // namespace mxjit
