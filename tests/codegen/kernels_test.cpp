// Every quantize kernel compiles without spills, within the shared memory that needs no asking: for sm_90a
// and one of the others in turn; where it leaves no register unused, for sm_120a and one of sm_100a and
// sm_103a, which get the same registers or nearly; for every target with MXJIT_LONG=1. Skipped where there is
// no NVRTC.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <ostream>

#include "codegen/descriptor.hpp"
#include "codegen/with_nvrtc.hpp"
#include "configure/configure.hpp"
#include "mxjit/error.hpp"

namespace mxjit {
namespace {

// Compiles what `problem` can get for `target`; whether a kernel takes all registers that its blocks leave
// it.
bool compile_all(compile::Nvrtc& nvrtc, const std::string& problem, std::string_view target) {
  bool full = false;
  for (const auto& configuration :
       configure::configure(problem::parse(problem), configure::default_profile(target))) {
    const codegen::KernelDescriptor descriptor = {configuration, std::string(target)};
    const compile::Compiled compiled = nvrtc.compile(descriptor);
    EXPECT_EQ(compiled.resources.spill_bytes, 0) << codegen::print(descriptor);
    EXPECT_EQ(compiled.resources.stack_bytes, 0) << codegen::print(descriptor);
    EXPECT_LE(compiled.resources.shared_bytes, 48 * 1024) << codegen::print(descriptor);
    const int threads = configuration.threads * std::max(1, configuration.min_blocks);
    full = full || compiled.resources.registers >= std::min(255, 65536 / threads / 8 * 8);
  }
  return full;
}

struct Case {
  const char* input;
  const char* block;
  const char* axes;
  const char* shape = R"([{"min": 1, "max": 1048576}, 5120])";

  // In place of its bytes.
  friend void PrintTo(const Case& c, std::ostream* out) {
    *out << c.input << ' ' << c.block << ' ' << c.axes << ' ' << c.shape;
  }
};

class KernelsTest : public test::WithNvrtc<testing::TestWithParam<Case>> {
 protected:
  // Calls compile(target), which says whether a kernel was full, for each target that it is this case's turn
  // to compile for; sm_90a comes first.
  template <typename Compile>
  static void for_targets(const Compile& compile) {
    const std::string name = testing::UnitTest::GetInstance()->current_test_info()->name();
    const auto turns = test::targets_in_turn(std::strtoul(&name[name.find('/') + 1], nullptr, 10));
    const auto is_its_turn = [&](std::string_view target) {
      return std::ranges::find(turns, target) != turns.end();
    };
    bool full = false;
    for (const std::string_view target : codegen::targets()) {
      const bool alike =
          target == "sm_103a" || (target == "sm_100a" && is_its_turn("sm_103a"));  // one of them is enough
      if (is_its_turn(target) || (full && !alike)) full |= compile(target);
    }
  }
};

class QuantizeKernels : public KernelsTest {};

TEST_P(QuantizeKernels, CompileWithoutSpills) {
  const Case& parameter = GetParam();
  for_targets([&](std::string_view target) {
    // Options take turns.
    std::size_t variant = target == "sm_90a" || target == "sm_103a" ? 0 : 2;
    bool full = false;
    for (const char* layout : {"plain", "blocked"}) {
      const char* rounding = std::array{"rceil", "floor", "ceil", "even"}[variant];
      const char* format = std::array{"e4m3", "e5m2"}[variant / 2];
      ++variant;
      const std::string problem =
          std::string(R"({"schema": 1, "op": "quantize", "scaling": "mx", "input": {"dtype": ")") +
          parameter.input + R"(", "shape": )" + parameter.shape + R"(}, "block": )" + parameter.block +
          R"(, "axes": )" + parameter.axes + R"(, "rounding": ")" + rounding + R"(", "format": ")" + format +
          R"(", "scale_layout": ")" + layout + "\"}";
      full |= compile_all(*nvrtc_, problem, target);
    }
    return full;
  });
}

INSTANTIATE_TEST_SUITE_P(
    Mx, QuantizeKernels,
    testing::Values(Case{"bf16", "32", R"(["row"])"}, Case{"bf16", "32", R"(["col"])"},
                    Case{"bf16", "32", R"(["row", "col"])"}, Case{"bf16", "128", R"(["row", "col"])"},
                    Case{"bf16", "[32, 32]", R"(["row", "col"])"},
                    Case{"bf16", "[128, 128]", R"(["row", "col"])"}, Case{"bf16", "[32, 32]", R"(["row"])"},
                    Case{"fp16", "32", R"(["row", "col"])"}, Case{"fp16", "128", R"(["row"])"},
                    Case{"fp32", "32", R"(["row", "col"])"}, Case{"fp32", "[128, 128]", R"(["row", "col"])"},
                    Case{"fp32", "32", R"(["row"])"},
                    Case{"bf16", "32", R"(["row"])", "[16, {\"min\": 1, \"max\": 65536}, 5120]"},
                    Case{"bf16", "32", R"(["row", "col"])", "[16, {\"min\": 1, \"max\": 65536}, 5120]"}));

// What comes before, and y. `block` may carry the layout of the scales and groups with it; `axes` is followed
// by what is asked for besides.
class FusionKernels : public KernelsTest {};

TEST_P(FusionKernels, CompileWithoutSpills) {
  const Case& parameter = GetParam();
  for_targets([&](std::string_view target) {
    return compile_all(
        *nvrtc_,
        std::string(R"({"schema": 1, "op": "quantize", "scaling": "mx", "input": {"dtype": ")") +
            parameter.input + R"(", "shape": )" + parameter.shape + R"(}, "block": )" + parameter.block +
            R"(, "axes": )" + parameter.axes + "}",
        target);
  });
}

constexpr const char* swiglu = R"(["row", "col"], "pre": {"kind": "swiglu"})";
constexpr const char* swiglu_rows = R"(["row"], "pre": {"kind": "swiglu"})";
constexpr const char* swiglu_columns = R"(["col"], "pre": {"kind": "swiglu", "limit": 7}, "emit_high": true)";
constexpr const char* gpt_oss =
    R"(["row", "col"], "emit_high": true, "pre": {"kind": "swiglu", "interleave": true, "alpha": 1.702, "limit": 7})";
constexpr const char* gpt_oss_rows =
    R"(["row"], "pre": {"kind": "swiglu", "interleave": true, "alpha": 1.702, "limit": 7})";
constexpr const char* norm = R"(["row", "col"], "pre": {"kind": "rmsnorm"})";
constexpr const char* norm_rows = R"(["row"], "pre": {"kind": "rmsnorm"}, "emit_high": true)";
constexpr const char* norm_rows_alone = R"(["row"], "pre": {"kind": "rmsnorm"})";
constexpr const char* y_too = R"(["row", "col"], "emit_high": true)";
constexpr const char* blocked = R"(32, "scale_layout": "blocked")";
constexpr const char* blocked_groups =
    R"(32, "scale_layout": "blocked", "groups": {"count": 40, "alignment": 32})";
constexpr const char* most_blocked_groups =
    R"([128, 128], "scale_layout": "blocked", "groups": {"count": 1024, "alignment": 128})";
// As many groups as leave a ring of operands the least shared memory.
constexpr const char* many_groups = R"(32, "groups": {"count": 512, "alignment": 128})";
constexpr const char* most_long_groups = R"(128, "groups": {"count": 1024, "alignment": 128})";
constexpr const char* many_square_groups =
    R"([128, 128], "scale_layout": "blocked", "groups": {"count": 512, "alignment": 128})";
constexpr const char* norm_y = R"(["row", "col"], "pre": {"kind": "rmsnorm"}, "emit_high": true)";
constexpr const char* both_axes = R"(["row", "col"])";
constexpr const char* turned = R"([4096, 5120], "layout": "col")";
constexpr const char* turned_experts = R"([8, 4096, 5120], "layout": "col")";

INSTANTIATE_TEST_SUITE_P(
    Mx, FusionKernels,
    testing::Values(Case{"bf16", "32", swiglu}, Case{"bf16", "32", swiglu_rows},
                    Case{"bf16", "32", swiglu_columns}, Case{"bf16", blocked_groups, swiglu},
                    Case{"bf16", "[128, 128]", swiglu}, Case{"bf16", "[32, 32]", swiglu_rows},
                    Case{"bf16", most_blocked_groups, swiglu}, Case{"bf16", "32", gpt_oss},
                    Case{"bf16", "128", gpt_oss_rows}, Case{"bf16", "32", swiglu_columns, turned},
                    Case{"bf16", "32", gpt_oss, turned_experts}, Case{"fp16", "32", swiglu},
                    Case{"fp16", "128", gpt_oss}, Case{"fp16", "32", gpt_oss_rows},
                    Case{"fp16", "32", gpt_oss, turned}, Case{"fp32", "32", swiglu},
                    Case{"fp32", "32", swiglu_rows}, Case{"fp32", blocked, gpt_oss},
                    Case{"fp32", blocked, gpt_oss_rows}, Case{"fp32", "32", gpt_oss, turned_experts},
                    Case{"bf16", many_groups, gpt_oss_rows, "[65536, 8192]"},
                    Case{"fp16", most_long_groups, gpt_oss_rows, "[65536, 8192]"},
                    Case{"bf16", many_square_groups, swiglu_rows}, Case{"bf16", most_long_groups, swiglu}));
// As others are but for the layout of their scales.
INSTANTIATE_TEST_SUITE_P(MxLong, FusionKernels,
                         testing::Values(Case{"bf16", blocked, swiglu}, Case{"bf16", blocked, swiglu_rows}));
INSTANTIATE_TEST_SUITE_P(
    Norm, FusionKernels,
    testing::Values(Case{"bf16", "32", norm}, Case{"bf16", "32", norm_rows},
                    Case{"bf16", blocked_groups, norm}, Case{"bf16", most_blocked_groups, norm},
                    Case{"bf16", "[128, 128]", norm, turned}, Case{"fp16", "128", norm_rows, turned_experts},
                    Case{"fp32", blocked, norm}, Case{"fp32", "32", norm_rows, turned},
                    Case{"bf16", "32", norm_y}, Case{"bf16", blocked, norm, turned},
                    Case{"bf16", "32", norm_y, "[4, 64, 64]"}, Case{"fp16", "32", norm}));
// Rows that a warp holds with four rows and with two, that several warps hold, the longest held, and longer.
INSTANTIATE_TEST_SUITE_P(NormRows, FusionKernels,
                         testing::Values(Case{"bf16", "32", norm_rows_alone, "[4096, 512]"},
                                         Case{"bf16", blocked, norm_rows_alone},
                                         Case{"bf16", blocked, norm_rows, "[16, 64, 7168]"},
                                         Case{"bf16", "32", norm_rows_alone, "[64, 32768]"},
                                         Case{"bf16", "32", norm_rows, "[64, 32769]"},
                                         Case{"fp16", "32", norm_rows, "[4096, 1280]"},
                                         Case{"fp16", blocked, norm_rows_alone, "[64, 8192]"},
                                         Case{"fp32", "32", norm_rows_alone},
                                         Case{"fp32", blocked, norm_rows, "[4096, 512]"},
                                         Case{"fp32", "32", norm_rows_alone, "[64, 24577]"}));
INSTANTIATE_TEST_SUITE_P(High, FusionKernels,
                         testing::Values(Case{"bf16", "32", y_too}, Case{"bf16", "32", y_too, turned},
                                         Case{"fp16", "32", y_too}, Case{"fp16", blocked, y_too, turned},
                                         Case{"fp32", "32", y_too},
                                         Case{"fp32", "[32, 32]", y_too, turned_experts},
                                         Case{"bf16", blocked_groups, both_axes, turned},
                                         Case{"fp32", blocked_groups, both_axes, turned},
                                         Case{"bf16", "32", R"(["row"], "emit_high": true)"},
                                         Case{"fp32", "32", R"(["row"], "emit_high": true)", turned},
                                         Case{"bf16", blocked, R"(["col"], "emit_high": true)"}));

// Float scales. `block` may carry the layout of the scales and groups with it.
class Fp32Kernels : public KernelsTest {};

TEST_P(Fp32Kernels, CompileWithoutSpills) {
  const Case& parameter = GetParam();
  for_targets([&](std::string_view target) {
    // Options take turns.
    const char* rounding = target == "sm_90a" || target == "sm_103a" ? "none" : "pow2";
    const char* format = target == "sm_90a" || target == "sm_100a" ? "e4m3" : "e5m2";
    return compile_all(
        *nvrtc_,
        std::string(R"({"schema": 1, "op": "quantize", "scaling": "fp32", "input": {"dtype": ")") +
            parameter.input + R"(", "shape": )" + parameter.shape + R"(}, "block": )" + parameter.block +
            R"(, "axes": )" + parameter.axes + R"(, "rounding": ")" + rounding + R"(", "format": ")" +
            format + "\"}",
        target);
  });
}

constexpr const char* row = R"(["row"])";
constexpr const char* col = R"(["col"])";
constexpr const char* both = R"(["row", "col"])";
constexpr const char* mn_major = R"(128, "scale_layout": "mn_major")";
constexpr const char* square_mn_major = R"([128, 128], "scale_layout": "mn_major")";
constexpr const char* groups = R"("row", "groups": {"count": 40, "alignment": 1})";
constexpr const char* most_groups = R"("row", "groups": {"count": 1024, "alignment": 1})";
constexpr const char* any_row = R"([64, {"min": 1, "max": 40000}])";
constexpr const char* many_of_any_row = R"([4096, {"min": 1, "max": 40000}])";

INSTANTIATE_TEST_SUITE_P(Blocks, Fp32Kernels,
                         testing::Values(Case{"bf16", "128", row}, Case{"bf16", "128", col},
                                         Case{"bf16", mn_major, both, "[4, 512, 5120]"},
                                         Case{"bf16", mn_major, row}, Case{"fp16", "128", both},
                                         Case{"fp16", mn_major, row}, Case{"fp32", "128", both},
                                         Case{"fp32", "128", row}, Case{"bf16", "[128, 128]", both},
                                         Case{"bf16", square_mn_major, row}, Case{"fp16", "[128, 128]", col},
                                         Case{"fp32", square_mn_major, both, "[4, 512, 5120]"}));
INSTANTIATE_TEST_SUITE_P(Rows, Fp32Kernels,
                         testing::Values(Case{"bf16", "\"row\"", col},
                                         Case{"bf16", "\"row\"", both, "[4, 512, 5120]"},
                                         Case{"bf16", "\"row\"", norm_rows},
                                         Case{"fp32", "\"row\"", norm_rows}, Case{"fp16", "\"row\"", both},
                                         Case{"fp32", "\"row\"", both}, Case{"bf16", groups, row},
                                         Case{"bf16", groups, both}, Case{"fp16", groups, both},
                                         Case{"fp32", groups, both}, Case{"fp32", groups, col}));
INSTANTIATE_TEST_SUITE_P(Tensor, Fp32Kernels,
                         testing::Values(Case{"bf16", "\"tensor\"", row}, Case{"bf16", "\"tensor\"", both},
                                         Case{"fp16", "\"tensor\"", row, "[64, 4096]"},
                                         Case{"fp32", "\"tensor\"", row, "[64, 4096]"},
                                         Case{"fp16", "\"tensor\"", both}, Case{"fp32", "\"tensor\"", both},
                                         Case{"fp32", "\"tensor\"", row, "[4, 512, 5120]"}));
INSTANTIATE_TEST_SUITE_P(
    Fusions, Fp32Kernels,
    testing::Values(Case{"bf16", "128", swiglu}, Case{"bf16", "128", swiglu_rows},
                    Case{"bf16", most_long_groups, swiglu}, Case{"bf16", "128", gpt_oss_rows},
                    Case{"bf16", mn_major, swiglu_rows}, Case{"fp16", "128", gpt_oss},
                    Case{"fp32", "128", gpt_oss_rows}, Case{"fp32", "[128, 128]", gpt_oss, turned_experts},
                    Case{"bf16", "\"row\"", swiglu}, Case{"fp32", groups, gpt_oss},
                    Case{"bf16", most_groups, gpt_oss}, Case{"fp16", "\"row\"", swiglu_columns, turned},
                    Case{"bf16", "\"tensor\"", swiglu_rows}, Case{"fp32", "\"tensor\"", swiglu},
                    Case{"fp16", "\"tensor\"", gpt_oss, turned},
                    Case{"bf16", "\"row\"", swiglu_rows, "[64, 4096]"},
                    Case{"bf16", "\"row\"", gpt_oss_rows, "[64, 65536]"},
                    Case{"fp16", "\"row\"", gpt_oss_rows, "[64, 512]"},
                    Case{"fp32", "\"row\"", gpt_oss_rows, "[64, 65538]"}, Case{"bf16", "128", y_too},
                    Case{"fp16", "\"row\"", y_too, turned}, Case{"fp32", "[128, 128]", y_too},
                    Case{"fp16", "\"tensor\"", y_too}, Case{"fp32", groups, y_too},
                    Case{"fp32", "\"row\"", R"(["row"], "emit_high": true)"},
                    Case{"bf16", "128", R"(["row"], "emit_high": true)"}));
// As that of the most groups is.
INSTANTIATE_TEST_SUITE_P(FusionsLong, Fp32Kernels, testing::Values(Case{"bf16", groups, gpt_oss}));
INSTANTIATE_TEST_SUITE_P(Norm, Fp32Kernels,
                         testing::Values(Case{"bf16", "128", norm}, Case{"bf16", "\"row\"", norm_rows},
                                         Case{"bf16", groups, norm}, Case{"fp16", "\"row\"", norm, turned},
                                         Case{"fp32", groups, norm}, Case{"fp16", most_groups, norm},
                                         Case{"fp32", "\"tensor\"", norm, turned_experts},
                                         Case{"fp32", "[128, 128]", norm}));
INSTANTIATE_TEST_SUITE_P(NormRows, Fp32Kernels,
                         testing::Values(Case{"bf16", "128", norm_rows_alone},
                                         Case{"bf16", mn_major, norm_rows},
                                         Case{"bf16", mn_major, norm_rows_alone, "[16, 64, 7168]"},
                                         Case{"bf16", groups, norm_rows_alone, "[4096, 5120]"},
                                         Case{"bf16", "\"row\"", norm_rows_alone, "[64, 8192]"},
                                         Case{"fp16", "128", norm_rows, "[4096, 300]"},
                                         Case{"fp16", "\"row\"", norm_rows_alone, "[64, 40000]"},
                                         Case{"fp32", "128", norm_rows_alone, "[64, 12288]"},
                                         Case{"fp32", "\"row\"", norm_rows, "[64, 24577]"}));
INSTANTIATE_TEST_SUITE_P(TurnedGroups, Fp32Kernels,
                         testing::Values(Case{"bf16", groups, both, turned},
                                         Case{"fp16", groups, col, turned},
                                         Case{"fp32", groups, both, turned},
                                         Case{"fp32", groups, gpt_oss, turned},
                                         Case{"bf16", groups, norm, turned}));
// Rows of every length, the longest of them too long to hold.
INSTANTIATE_TEST_SUITE_P(RowLengthsLong, Fp32Kernels,
                         testing::Values(Case{"bf16", "\"row\"", row, any_row},
                                         Case{"bf16", "128", norm_rows, many_of_any_row},
                                         Case{"fp32", "128", norm_rows, many_of_any_row},
                                         Case{"bf16", "\"row\"", norm_rows_alone, any_row},
                                         Case{"fp16", "\"row\"", row, any_row},
                                         Case{"fp32", "\"row\"", row, any_row}));
// One of each kind: a warp with several rows, a thread block, the most that is held, more.
INSTANTIATE_TEST_SUITE_P(
    RowLengths, Fp32Kernels,
    testing::Values(Case{"bf16", "\"row\"", row, "[64, 200]"}, Case{"fp16", "\"row\"", row, "[64, 2048]"},
                    Case{"fp32", "\"row\"", row, "[64, 4096]"}, Case{"bf16", "\"row\"", row, "[64, 32768]"},
                    Case{"fp32", "\"row\"", row, "[64, 16384]"}, Case{"bf16", "\"row\"", row, "[64, 32769]"},
                    Case{"fp32", "\"row\"", row, "[64, 32768]"}));

}  // namespace
}  // namespace mxjit
