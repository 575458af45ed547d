// What GEMM kernels do to D before it is stored: e4m3 by scales and by blocks, amax, SwiGLU, bits that M has
// no say in. Against the fp64 reference, between guard zones, on dirty outputs.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <string>
#include <vector>

#include "configure/gemm.hpp"
#include "device/gemm_compare.hpp"
#include "device/gemm_problems.hpp"
#include "device/guarded.hpp"
#include "device/machine.hpp"
#include "device/problems.hpp"
#include "dispatch/run.hpp"
#include "reference/reference.hpp"

namespace mxjit::device {
namespace {

using problem::Gemm;
using problem::Problem;

class GemmOutputsOnDevice : public DeviceTest {};

Gemm of_e4m3(std::int64_t m, std::int64_t n, std::int64_t k, const char* a, const char* b,
             Accumulation accumulation) {
  Gemm gemm = make_gemm(m, n, k, a, b, accumulation, DType::e4m3);
  gemm.alpha = 0.25;  // most values inside the format, some above
  return gemm;
}

TEST_F(GemmOutputsOnDevice, E4m3ByOneScaleAndByRows) {
  Random random(21);
  std::vector<Gemm> gemms;
  for (const auto& [a, b] : {std::pair{"row", "row"}, {"128", "128x128"}, {"mx32", "tensor"}})
    for (const Accumulation accumulation : {Accumulation::promote, Accumulation::exact})
      for (const std::int64_t n : {144, 77}) {
        Gemm gemm = of_e4m3(150, n, 272, a, b, accumulation);
        gemm.d.amax = n == 77;
        if (accumulation == Accumulation::exact) gemm.bias = DType::bf16;
        gemms.push_back(gemm);
      }
  Gemm batched = of_e4m3(70, 80, 160, "row", "row", Accumulation::promote);
  batched.a.tensor.shape.insert(batched.a.tensor.shape.begin(), 3);
  batched.b.tensor.shape.insert(batched.b.tensor.shape.begin(), 3);
  gemms.push_back(batched);
  if (small()) gemms.resize(3);
  prewarm(problems_of(gemms));
  for (const Gemm& gemm : gemms)
    for (const bool rows : {false, true}) {
      SCOPED_TRACE(rows ? "a scale a row" : "one scale");
      TensorMap inputs = gemm_inputs(whole(gemm), random);
      if (rows) scale_rows(gemm, inputs, random);
      expect_outputs(gemm, inputs, {.extra_pitch = rows ? 5 : 0, .shift = rows ? 3 : 0});
    }
}

TEST_F(GemmOutputsOnDevice, AmaxOfEveryOutput) {
  Random random(22);
  std::vector<Gemm> gemms;
  for (const DType d : {DType::bf16, DType::fp16, DType::fp32, DType::e4m3})
    for (const Accumulation accumulation : {Accumulation::fast, Accumulation::promote, Accumulation::exact}) {
      Gemm gemm = make_gemm(190, 200, 256, "row", "row", accumulation, d);
      gemm.alpha = 0.125;
      gemm.d.amax = true;
      gemms.push_back(gemm);
    }
  if (small()) gemms.resize(3);
  prewarm(problems_of(gemms));
  for (const Gemm& gemm : gemms) expect_outputs(gemm, gemm_inputs(whole(gemm), random));

  // A NaN in D is in amax; nothing is written but zero where D has no elements.
  TensorMap inputs = gemm_inputs(whole(gemms.front()), random);
  inputs.at("a").bytes[77 * 256] = 0x7F;
  expect_outputs(gemms.front(), inputs);
  for (const auto& [m, n, k] : {std::array<std::int64_t, 3>{0, 64, 64}, {64, 0, 64}, {48, 80, 0}}) {
    Gemm gemm = make_gemm(m, n, k, "row", "row", Accumulation::promote);
    gemm.d.amax = true;
    expect_outputs(gemm, gemm_inputs(whole(gemm), random));
  }
}

// The second launch starts from what the first left.
TEST_F(GemmOutputsOnDevice, AmaxForgetsTheCallBefore) {
  Random random(23);
  Gemm gemm = make_gemm(100, 112, 224, "row", "row", Accumulation::promote);
  gemm.d.amax = true;
  const Problem problem = whole(gemm);
  const TensorMap large = gemm_inputs(problem, random);
  TensorMap zero = large;
  std::ranges::fill(zero.at("a").bytes, std::uint8_t{0});
  const Machine& machine = Machine::get();
  GuardedProblem guarded(problem, large);
  for (const TensorMap* inputs : std::initializer_list<const TensorMap*>{&large, &large, &zero}) {
    guarded.refill(*inputs);
    guarded.launch(machine.context(), machine.stream());
    machine.synchronize();
    const double want = value_of(reference::run(problem, *inputs).at("amax"), 0);
    EXPECT_NEAR(value_of(guarded.read().at("amax"), 0), want, want * 0x1p-10);
  }
}

// Gates whose quotient fp32 does not reach, and one that double does not reach either.
TEST_F(GemmOutputsOnDevice, SwigluOfInfiniteUps) {
  Random random(29);
  Gemm gemm = make_gemm(4, 2, 16, "none", "none", Accumulation::exact, DType::fp32);
  gemm.b.tensor.dtype = DType::e5m2;
  gemm.epilogue = problem::Swiglu{.interleave = true, .alpha = 1.0, .limit = {}};
  TensorMap inputs = gemm_inputs(whole(gemm), random);
  auto &a = inputs.at("a").bytes, &b = inputs.at("b").bytes;
  std::fill(a.begin(), a.end(), std::uint8_t{0});
  std::fill(b.begin(), b.end(), std::uint8_t{0});
  for (std::size_t row = 0; row < 4; ++row) {
    a[row * 16] = static_cast<std::uint8_t>(0x38 + row * 8);  // 1, 2, 4, 8 times a gate of -96
    a[row * 16 + 1] = 0x38;
  }
  b[0] = 0xD6, b[16 + 1] = 0x7C;
  expect_outputs(gemm, inputs);
}

TEST_F(GemmOutputsOnDevice, SwigluOfEveryForm) {
  Random random(24);
  std::vector<Gemm> gemms;
  const auto add = [&](const char* a, const char* b, DType d, Accumulation accumulation) {
    for (const bool interleave : {false, true})
      for (const bool limited : {false, true}) {
        Gemm gemm = make_gemm(150, 212, 400, a, b, accumulation, d);
        gemm.alpha = 0x1p-6;  // gates of a few units
        gemm.epilogue = problem::Swiglu{.interleave = interleave, .alpha = 1.0, .limit = {}};
        if (limited) gemm.epilogue->alpha = 1.702, gemm.epilogue->limit = 3.0;
        if (limited) gemm.bias = DType::bf16;
        gemm.d.amax = interleave;
        gemms.push_back(gemm);
      }
  };
  add("row", "row", DType::fp32, Accumulation::exact);
  add("128", "128x128", DType::bf16, Accumulation::promote);
  add("mx32", "mx32 blocked", DType::fp16, Accumulation::exact);
  add("tensor", "mx32x32", DType::e4m3, Accumulation::promote);
  add("row", "128 mn", DType::bf16, Accumulation::fast);
  for (const bool batched : {false, true}) {
    Gemm gemm = make_gemm(70, 82, 160, "row", "row", Accumulation::promote);
    gemm.alpha = 0x1p-6;
    gemm.epilogue = problem::Swiglu{};
    gemm.b.mn_major = true;
    if (batched) gemm.a.tensor.shape.insert(gemm.a.tensor.shape.begin(), 2);
    if (batched) gemm.b.tensor.shape.insert(gemm.b.tensor.shape.begin(), 1);
    gemms.push_back(gemm);
  }
  if (small()) gemms.resize(6);
  prewarm(problems_of(gemms));
  for (std::size_t i = 0; i < gemms.size(); ++i)
    expect_outputs(gemms[i], gemm_inputs(whole(gemms[i]), random),
                   {.extra_pitch = i % 2 == 0 ? 0 : 3, .shift = static_cast<int>(i % 3)});
}

TEST_F(GemmOutputsOnDevice, RequantizedBlocks) {
  Random random(25);
  std::vector<Gemm> gemms;
  struct Case {
    Scaling scaling;
    Rounding rounding;
    ScaleLayout layout;
  };
  const std::vector<Case> cases = {{Scaling::mx, Rounding::rceil, ScaleLayout::plain},
                                   {Scaling::mx, Rounding::floor, ScaleLayout::blocked},
                                   {Scaling::mx, Rounding::ceil, ScaleLayout::blocked},
                                   {Scaling::mx, Rounding::even, ScaleLayout::plain},
                                   {Scaling::fp32, Rounding::none, ScaleLayout::plain},
                                   {Scaling::fp32, Rounding::none, ScaleLayout::mn_major},
                                   {Scaling::fp32, Rounding::pow2, ScaleLayout::mn_major}};
  for (const Case& each : cases)
    for (const bool gated : {false, true})
      for (const auto& [m, n] : {std::pair<std::int64_t, std::int64_t>{150, 420}, {61, 200}}) {
        Gemm gemm = make_gemm(m, n, 272, "row", "row", Accumulation::exact, DType::e4m3);
        gemm.d.requant = problem::Recipe{.format = DType::e4m3,
                                         .scaling = each.scaling,
                                         .block = {.rows = 1, .cols = each.scaling == Scaling::mx ? 32 : 128},
                                         .rounding = each.rounding,
                                         .scale_layout = each.layout,
                                         .amax_cap = {}};
        gemm.alpha = 0x1p-6;
        gemm.d.amax = m == 61;
        if (gated) gemm.epilogue = problem::Swiglu{.interleave = m == 61, .alpha = 1.0, .limit = {}};
        if (m == 61) gemm.accumulation = Accumulation::promote;
        if (m == 61 && each.scaling == Scaling::fp32) gemm.d.requant->amax_cap = 3.0;
        gemms.push_back(gemm);
      }
  Gemm batched = gemms[4];
  batched.a.tensor.shape.insert(batched.a.tensor.shape.begin(), 3);
  batched.b.tensor.shape.insert(batched.b.tensor.shape.begin(), 3);
  ASSERT_EQ(batched.d.requant->scale_layout, ScaleLayout::blocked);
  gemms.push_back(batched);
  if (small()) gemms = {gemms[0], gemms[5], gemms[20], gemms.back()};
  prewarm(problems_of(gemms));
  for (const Gemm& gemm : gemms) {
    TensorMap inputs = gemm_inputs(whole(gemm), random);
    expect_outputs(gemm, inputs, {.extra_pitch = gemm.d.amax ? 7 : 0});
    // A row of NaN, its blocks' scales included; a row of zeros.
    inputs.at("a").bytes[3 * 272] = 0x7F;
    std::fill_n(inputs.at("a").bytes.begin() + std::ptrdiff_t{5} * 272, 272, std::uint8_t{0});
    expect_outputs(gemm, inputs);
  }
  for (const auto& [m, n, k] : {std::array<std::int64_t, 3>{0, 64, 64}, {64, 0, 64}, {48, 80, 0}}) {
    Gemm empty = gemms.front();
    empty.a.tensor.shape = {m, k};
    empty.b.tensor.shape = {n, k};
    expect_outputs(empty, gemm_inputs(whole(empty), random));
  }
}

// The rows of a tensor in the order of `rows`.
HostTensor rows_of(const HostTensor& tensor, std::int64_t first, std::int64_t count) {
  HostTensor part = tensor;
  part.shape[0] = count;
  const std::size_t bytes = tensor.bytes.size() / static_cast<std::size_t>(tensor.shape[0]);
  const auto begin = tensor.bytes.begin() + first * static_cast<std::ptrdiff_t>(bytes);
  part.bytes.assign(begin, begin + count * static_cast<std::ptrdiff_t>(bytes));
  return part;
}

// The tiles of the Hopper kernel, whatever the model would choose, several a block, over tails of M, of D's
// columns and of K.
class GemmOutputTiles : public DeviceTest {
 protected:
  static void expect_every_tile(const Gemm& gemm, Random& random, const Placement& placement = {}) {
    const Machine& machine = Machine::get();
    auto& state = dispatch::ContextAccess::state(machine.context());
    const Problem problem = whole(gemm);
    SCOPED_TRACE(problem::print(problem));
    const TensorMap inputs = gemm_inputs(problem, random);
    const TensorMap want = reference::run(problem, inputs);
    GuardedProblem guarded(problem, inputs, placement);
    const dispatch::GemmCall call = dispatch::gemm_call(gemm, guarded.tensors());
    const dispatch::GemmSizes sizes = dispatch::check_gemm(call.options, call.args);
    dispatch::GemmKey key{.traits = dispatch::gemm_traits(call.options, call.args), .tile = 0};
    ASSERT_TRUE(configure::is_dense_fp8(key.traits, state.profile));
    const auto tiles = configure::gemm_tiles(key.traits);
    for (; key.tile < tiles.size(); ++key.tile) {
      SCOPED_TRACE(configure::tile_name(tiles[key.tile]));
      auto plan = *state.make_gemm_plan(call.options, call.args, key);
      guarded.dirty();
      plan.recipe.sm_count = 2;
      plan.launch(call.args, sizes, machine.stream());
      machine.synchronize();
      EXPECT_EQ(gemm_difference(gemm, inputs, guarded.read(), want), "");
    }
  }
  void SetUp() override {
    DeviceTest::SetUp();
    if (!IsSkipped() && Machine::get().device().facts().target != "sm_90a")
      GTEST_SKIP() << "the tiles are sm_90a's";
  }
};

struct Operands {
  const char *a, *b;
  Accumulation accumulation;
};

Gemm gates(std::int64_t m, std::int64_t columns, std::int64_t k, const Operands& of, DType d,
           bool interleave) {
  Gemm gemm = make_gemm(m, columns * 2, k, of.a, of.b, of.accumulation, d);
  gemm.alpha = 0x1p-5;
  gemm.epilogue = problem::Swiglu{.interleave = interleave, .alpha = 1.0, .limit = {}};
  return gemm;
}

problem::Recipe blocks_of_d(Scaling scaling, Rounding rounding, ScaleLayout layout) {
  return {.format = DType::e4m3,
          .scaling = scaling,
          .block = {.rows = 1, .cols = scaling == Scaling::mx ? 32 : 128},
          .rounding = rounding,
          .scale_layout = layout,
          .amax_cap = {}};
}

TEST_F(GemmOutputTiles, Swiglu) {
  Random random(31);
  constexpr std::array operands = {
      Operands{"row", "row", Accumulation::fast}, Operands{"tensor", "row", Accumulation::promote},
      Operands{"128 mn", "128x128", Accumulation::promote}, Operands{"128", "row", Accumulation::promote}};
  unsigned drawn = 0;
  for (const Operands& of : operands)
    for (const bool interleave : {false, true})
      for (const DType d : {DType::bf16, DType::fp32, DType::fp16, DType::e4m3}) {
        if (small() && drawn++ % 6 != 0) continue;
        const bool two_blocks = !interleave && of.b == std::string("128x128");
        // Two blocks' factors come in more than one chunk of K.
        Gemm gemm = two_blocks ? gates(70, 256, 2192, of, d, interleave)
                               : gates(200, 152, d == DType::fp32 ? 656 : 256, of, d, interleave);
        if (interleave) gemm.epilogue->alpha = 1.702, gemm.epilogue->limit = 3.0, gemm.bias = DType::bf16;
        gemm.d.amax = !interleave;
        expect_every_tile(gemm, random, {.extra_pitch = d == DType::fp16 ? 16 : 0, .dirt = 0x5A});
      }
}

TEST_F(GemmOutputTiles, Requantized) {
  Random random(32);
  struct Case {
    Operands of;
    problem::Recipe recipe;
  };
  const Operands fast{"row", "row", Accumulation::fast}, promote{"tensor", "none", Accumulation::promote},
      blocks{"128 mn", "128x128", Accumulation::promote};
  const std::vector<Case> cases = {
      {fast, blocks_of_d(Scaling::mx, Rounding::rceil, ScaleLayout::blocked)},
      {fast, blocks_of_d(Scaling::fp32, Rounding::none, ScaleLayout::plain)},
      {promote, blocks_of_d(Scaling::mx, Rounding::even, ScaleLayout::plain)},
      {promote, blocks_of_d(Scaling::fp32, Rounding::pow2, ScaleLayout::mn_major)},
      {blocks, blocks_of_d(Scaling::mx, Rounding::floor, ScaleLayout::blocked)},
      {blocks, blocks_of_d(Scaling::fp32, Rounding::none, ScaleLayout::mn_major)}};
  for (std::size_t i = 0; i < cases.size(); ++i)
    for (const bool gated : {false, true}) {
      // Every two of operands, scales and gates together.
      if (small() && (i + i / 2 + (gated ? 1 : 0)) % 2 != 0) continue;
      const Case& each = cases[i];
      // Rows of D that the copy engine stores, or not; a last block that is no whole one.
      Gemm gemm = gated ? gates(77, 256, 272, each.of, DType::e4m3, false)
                        : make_gemm(77, 333, 272, each.of.a, each.of.b, each.of.accumulation, DType::e4m3);
      if (gated && each.of.b != std::string("128x128")) gemm.b.tensor.shape[0] = 2 * 176;
      gemm.d.requant = each.recipe;
      gemm.d.amax = gated;
      expect_every_tile(gemm, random, {.dirt = 0xC3});
    }
}

TEST_F(GemmOutputsOnDevice, BatchInvariantRowsKeepTheirBits) {
  Random random(26);
  constexpr std::int64_t m = 300;
  std::vector<Gemm> gemms;
  const auto add = [&](const char* a, const char* b, Accumulation accumulation, DType d) {
    Gemm gemm = make_gemm(m, 208, 400, a, b, accumulation, d);
    gemm.batch_invariant = true;
    gemms.push_back(gemm);
  };
  add("row", "row", Accumulation::promote, DType::fp32);
  add("row", "tensor", Accumulation::fast, DType::bf16);
  add("128", "128x128", Accumulation::promote, DType::bf16);
  add("row", "row", Accumulation::exact, DType::fp32);
  if (small()) gemms.resize(2);
  for (const Gemm& gemm : gemms) {
    const TensorMap inputs = gemm_inputs(whole(gemm), random);
    const HostTensor all = run_guarded(whole(gemm), inputs).at("d");
    EXPECT_LE(relative_error(all, reference::run(whole(gemm), inputs).at("d")), tolerance(gemm));
    for (const auto& [first, count] :
         {std::pair<std::int64_t, std::int64_t>{0, 1}, {299, 1}, {31, 17}, {64, 128}, {5, 200}}) {
      Gemm part = gemm;
      part.a.tensor.shape[0] = count;
      TensorMap some = inputs;
      some.at("a") = rows_of(inputs.at("a"), first, count);
      some.at("a_scale") = rows_of(inputs.at("a_scale"), first, count);
      SCOPED_TRACE(problem::print(whole(part)));
      EXPECT_EQ(run_guarded(whole(part), some).at("d").bytes, rows_of(all, first, count).bytes);
    }
  }
}

}  // namespace
}  // namespace mxjit::device
