// GEMM kernels against the fp64 reference, between guard zones, on dirty outputs: every form of operands and
// outputs, extents and special values.
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "configure/configure.hpp"
#include "contract/golden.hpp"
#include "device/gemm_problems.hpp"
#include "device/guarded.hpp"
#include "device/problems.hpp"
#include "mxjit/error.hpp"
#include "reference/reference.hpp"
#include "safetensors/safetensors.hpp"

namespace mxjit::device {
namespace {

using problem::Gemm;
using problem::Problem;

void expect_close(const Gemm& gemm, Random& random, const Placement& placement = {}) {
  const Problem problem = whole(gemm);
  SCOPED_TRACE(problem::print(problem));
  SCOPED_TRACE(testing::Message() << "extra pitch " << placement.extra_pitch << ", shift "
                                  << placement.shift);
  const TensorMap inputs = gemm_inputs(problem, random);
  const TensorMap expected = reference::run(problem, inputs);
  const TensorMap got = run_guarded(problem, inputs, placement);
  EXPECT_LE(relative_error(got.at("d"), expected.at("d")), tolerance(gemm));
}

TEST_F(GemmOnDevice, GoldenCases) {
  const std::filesystem::path root = contract::goldens();
  if (root.empty()) GTEST_SKIP() << "MXJIT_GOLDENS is not set";
  int compared = 0;
  for (const auto& entry : std::filesystem::directory_iterator(root)) {
    const std::filesystem::path& folder = entry.path();
    if (!folder.filename().string().starts_with("gemm_")) continue;
    SCOPED_TRACE(folder.filename().string());
    const Problem problem = problem::parse(contract::read_text(folder / "problem.json"));
    try {
      configure::configure(problem, configure::profile("h200"));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::unsupported) << error.what();
      continue;
    }
    const safetensors::File in = safetensors::read(folder / "in.safetensors");
    const safetensors::File expect = safetensors::read(folder / "expect.safetensors");
    const contract::Comparison comparison = contract::read_comparison(folder / "expect.json");
    const TensorMap out = run_guarded(problem, in.tensors);
    for (const auto& [name, expected] : expect.tensors)
      EXPECT_EQ(contract::difference(out.at(name), expected, comparison), "") << name;
    ++compared;
  }
  EXPECT_GE(compared, 12);
}

// Every pair of spans and layouts, on the kernels that take them.
TEST_F(GemmOnDevice, EveryScaling) {
  const std::vector<std::string> spans = {"none", "tensor", "row",     "k",
                                          "128",  "128 mn", "128x128", "128x128 mn"};
  const std::vector<std::string> codes = {"mx32",    "mx32 blocked",    "mx128",     "mx128 blocked",
                                          "mx32x32", "mx32x32 blocked", "mx128x128", "mx128x128 blocked"};
  std::vector<Gemm> gemms;
  // Every pair in one accumulation, every accumulation with a third of the pairs.
  for (const std::string& a : spans)
    for (const std::string& b : spans)
      gemms.push_back(make_gemm(150, 176, 400, a, b, static_cast<Accumulation>(gemms.size() % 3)));
  for (const std::string& a : codes) {
    gemms.push_back(make_gemm(150, 176, 400, a, a, Accumulation::promote));
    gemms.push_back(make_gemm(150, 176, 400, a, "row", Accumulation::exact));
    gemms.push_back(make_gemm(150, 176, 400, "128", a, Accumulation::promote));
  }
  if (small()) gemms.resize(12);
  prewarm(problems_of(gemms));
  Random random(2);
  for (const Gemm& gemm : gemms) expect_close(gemm, random);
}

// Products of factors and values that bf16 does not hold.
TEST_F(GemmOnDevice, FactorsOfContractionIndices) {
  Random random(12);
  std::vector<Gemm> gemms;
  const auto add = [&](const char* a, const char* b,
                       Accumulation accumulation = Accumulation::exact) -> Gemm& {
    return gemms.emplace_back(make_gemm(77, 90, 333, a, b, accumulation));
  };
  add("k", "none").a.tensor.dtype = DType::bf16;
  add("none", "k").b.mn_major = true;
  add("k", "k").b.tensor.dtype = DType::e5m2;
  add("mx32 blocked", "k").a.mn_major = true;
  add("k", "128x128", Accumulation::promote).d.amax = true;
  add("k", "row", Accumulation::fast).bias = DType::bf16;
  add("row", "k", Accumulation::promote).beta = 0.5;
  for (const auto& [of_a, of_b] : {std::pair<std::int64_t, std::int64_t>{3, 3}, {3, 1}, {1, 3}}) {
    Gemm& batched = add("k", "k");
    batched.a.tensor.shape.insert(batched.a.tensor.shape.begin(), of_a);
    batched.b.tensor.shape.insert(batched.b.tensor.shape.begin(), of_b);
  }
  for (const std::int64_t k : {0, 1, 16, 17, 128}) {
    Gemm& short_of = add("none", "k");
    short_of.a.tensor.shape[1] = short_of.b.tensor.shape[1] = k;
  }
  prewarm(problems_of(gemms));
  for (const Gemm& gemm : gemms) {
    Gemm exactly = gemm;  // no kernel rounds more than this one
    exactly.accumulation = Accumulation::exact;
    expect_close(exactly, random);
    expect_close(gemm, random, {.extra_pitch = 3, .shift = 1});
  }

  // Infinities and NaN as IEEE has them; factors far from 1, the largest of them on zeros.
  Gemm gemm = make_gemm(40, 50, 60, "k", "none", Accumulation::exact);
  gemm.b.tensor.dtype = DType::e5m2;
  TensorMap inputs = gemm_inputs(whole(gemm), random);
  const auto set = [&](const char* name, std::size_t at, auto value) {
    std::memcpy(inputs.at(name).bytes.data() + at * sizeof value, &value, sizeof value);
  };
  for (std::size_t row = 0; row < 40; ++row) set("a", row * 60 + 3, std::uint8_t{0});
  set("a_scale", 3, 0x1.8p120F);
  set("a_scale", 4, 0x1.8p-120F);
  set("a_scale", 5, 0x1p0F);                   // nothing but zeros after its first bits
  set("b", 7 * 60 + 5, std::uint8_t{0x7C});    // infinity in column 7
  set("b", 8 * 60 + 9, std::uint8_t{0x7F});    // NaN in column 8
  set("a", 11 * 60 + 12, std::uint8_t{0x7F});  // NaN in row 11
  const TensorMap want = reference::run(whole(gemm), inputs);
  const TensorMap got = run_guarded(whole(gemm), inputs);
  EXPECT_LE(relative_error(got.at("d"), want.at("d")), tolerance(gemm));
}

TEST_F(GemmOnDevice, EveryOutputAndEpilogue) {
  std::vector<Gemm> gemms;
  for (const DType d : {DType::bf16, DType::fp16, DType::fp32})
    for (const std::optional<DType> bias : {std::optional<DType>{}, std::optional(DType::bf16),
                                            std::optional(DType::fp16), std::optional(DType::fp32)})
      for (const double beta : {0.0, -0.75})
        for (const Accumulation accumulation : {Accumulation::promote, Accumulation::exact}) {
          Gemm gemm = make_gemm(190, 200, 256, "row", "tensor", accumulation, d);
          gemm.bias = bias;
          gemm.alpha = 1.25;
          gemm.beta = beta;
          gemms.push_back(gemm);
        }
  // Half of them: each value of each option with each of every other.
  std::erase_if(gemms, [at = 0U](const Gemm&) mutable { return std::popcount(at++) % 2 == 1; });
  if (small()) gemms.resize(8);
  prewarm(problems_of(gemms));
  Random random(3);
  for (const Gemm& gemm : gemms) expect_close(gemm, random);
}

TEST_F(GemmOnDevice, EveryTypeMajorAndBatch) {
  std::vector<Gemm> gemms;
  for (const DType a : {DType::e4m3, DType::e5m2, DType::bf16})
    for (const DType b : {DType::e4m3, DType::e5m2, DType::bf16})
      for (int majors = 0; majors < 4; ++majors) {
        Gemm gemm = make_gemm(130, 144, 208, "row", "row", Accumulation::promote);
        gemm.a.tensor.dtype = a;
        gemm.b.tensor.dtype = b;
        gemm.a.mn_major = (majors & 1) != 0;
        gemm.b.mn_major = (majors & 2) != 0;
        gemms.push_back(gemm);
      }
  for (const char* span : {"row", "128 mn", "128x128", "mx32", "mx32 blocked"})
    for (const auto& [of_a, of_b] : {std::pair<std::int64_t, std::int64_t>{3, 3}, {3, 1}, {1, 3}}) {
      Gemm gemm = make_gemm(70, 80, 160, span, span, Accumulation::promote);
      gemm.a.tensor.shape.insert(gemm.a.tensor.shape.begin(), of_a);
      gemm.b.tensor.shape.insert(gemm.b.tensor.shape.begin(), of_b);
      gemms.push_back(gemm);
    }
  if (small()) gemms.resize(6);
  prewarm(problems_of(gemms));
  Random random(4);
  for (const Gemm& gemm : gemms) expect_close(gemm, random);
}

TEST_F(GemmOnDevice, EveryPitchAndAlignment) {
  Random random(5);
  std::vector<Problem> problems;
  for (const Accumulation accumulation : {Accumulation::fast, Accumulation::promote, Accumulation::exact})
    for (const int of_operands : {16, 1})
      for (const int of_d : {16, 2}) {
        Gemm gemm = make_gemm(100, 112, 224, "row", "row", accumulation, DType::bf16);
        gemm.a.tensor.align = gemm.b.tensor.align = of_operands;
        gemm.d.tensor.align = of_d;
        problems.push_back(whole(gemm));
      }
  prewarm(problems);
  for (const Accumulation accumulation : {Accumulation::fast, Accumulation::promote, Accumulation::exact})
    for (const std::int64_t extra : {0, 1, 3, 8, 16, 48})
      for (const int shift : {0, 1, 3, 16}) {
        expect_close(make_gemm(100, 112, 224, "row", "row", accumulation, DType::bf16), random,
                     {.extra_pitch = extra, .shift = shift});
        if (small()) return;
      }
}

TEST_F(GemmOnDevice, RandomExtents) {
  Random random(6);
  const std::vector<std::int64_t> extents = {1, 2, 7, 16, 31, 64, 65, 97, 127, 128, 129, 191, 257, 509};
  const auto draw = [&] { return extents[random() % extents.size()]; };
  const std::vector<std::array<const char*, 2>> spans = {
      {"row", "row"}, {"tensor", "row"}, {"128", "128x128"}, {"128 mn", "row"}, {"mx32", "mx32 blocked"}};
  std::vector<std::pair<Gemm, Placement>> drawn;
  std::vector<Problem> problems;
  for (int i = 0; i < (small() ? 10 : 250); ++i) {
    const auto& span = spans[random() % spans.size()];
    const bool mx = span[0][0] == 'm';
    const auto accumulation = static_cast<Accumulation>(mx ? random() % 2 * 2 : random() % 3);
    const Gemm gemm = make_gemm(draw(), draw(), draw(), span[0], span[1], accumulation,
                                random() % 2 == 0 ? DType::bf16 : DType::fp32);
    // Half of them with pitches that the Hopper kernel takes.
    const std::int64_t k = gemm.a.tensor.shape[1].max;
    Placement placement{.dirt = static_cast<std::uint8_t>(random())};
    if (random() % 2 == 0) placement.extra_pitch = (16 - k % 16) % 16;
    Gemm pitched = gemm;
    for (problem::TensorSpec* tensor : {&pitched.a.tensor, &pitched.b.tensor})
      tensor->ld = k + placement.extra_pitch;
    pitched.d.tensor.ld = gemm.b.tensor.shape[0].max + placement.extra_pitch;
    problems.push_back(whole(pitched));
    drawn.emplace_back(gemm, placement);
  }
  prewarm(problems);
  for (const auto& [gemm, placement] : drawn) expect_close(gemm, random, placement);
}

TEST_F(GemmOnDevice, EmptyExtents) {
  Random random(7);
  for (const auto& [m, n, k] :
       {std::array<std::int64_t, 3>{0, 64, 64}, {64, 0, 64}, {0, 0, 0}, {48, 80, 0}}) {
    Gemm gemm = make_gemm(m, n, k, "row", "row", Accumulation::promote);
    gemm.bias = DType::fp32;
    gemm.beta = 0.5;
    expect_close(gemm, random);
  }
}

// NaN and infinity reach the outputs of their own row and column, and no other.
TEST_F(GemmOnDevice, SpecialValuesPoisonOnlyTheirOwn) {
  Random random(8);
  constexpr std::int64_t m = 140, n = 160, k = 272, poisoned_row = 77, poisoned_column = 130;
  std::vector<Problem> problems;
  for (const char* span : {"row", "128", "mx32"})
    for (const Accumulation accumulation : {Accumulation::fast, Accumulation::promote, Accumulation::exact})
      if (span[0] != 'm' || accumulation != Accumulation::fast)
        problems.push_back(whole(make_gemm(m, n, k, span, span[0] == '1' ? "128x128" : span, accumulation)));
  prewarm(problems);
  for (const Problem& problem : problems) {
    SCOPED_TRACE(problem::print(problem));
    TensorMap inputs = gemm_inputs(problem, random);
    inputs["a"].bytes[static_cast<std::size_t>(poisoned_row * k + 270)] = 0x7F;
    inputs["b"].bytes[static_cast<std::size_t>(poisoned_column * k)] = 0xFF;
    const HostTensor d = run_guarded(problem, inputs).at("d");
    int wrong = 0;
    for (std::int64_t r = 0; r < m; ++r)
      for (std::int64_t c = 0; c < n; ++c) {
        const bool nan = std::isnan(value_of(d, static_cast<std::size_t>(r * n + c)));
        if (nan != (r == poisoned_row || c == poisoned_column)) ++wrong;
      }
    EXPECT_EQ(wrong, 0);
  }
}

}  // namespace
}  // namespace mxjit::device
