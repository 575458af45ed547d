// The choice of GEMM kernels: what is refused, and that a range yields what its problems get.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>

#include "configure/configure.hpp"
#include "configure/gemm.hpp"
#include "loops.hpp"
#include "mxjit/error.hpp"

namespace mxjit::configure {
namespace {

problem::OperandScaling by_row() { return {.kind = Scaling::fp32, .block = {.kind = Block::Kind::row}}; }

problem::Gemm gemm(problem::Extent m, problem::Extent n, problem::Extent k) {
  problem::Gemm made;
  made.a.tensor = {.dtype = DType::e4m3, .shape = {m, k}, .ld = {}, .align = {}};
  made.b.tensor = {.dtype = DType::e4m3, .shape = {n, k}, .ld = {}, .align = {}};
  made.a.scaling = made.b.scaling = by_row();
  return made;
}

std::vector<Configuration> kernels(const problem::Gemm& op, const char* target = "sm_90a") {
  return configure({.name = {}, .op = op}, default_profile(target));
}

TEST(GemmConfigure, OneKernelForOneProblem) {
  for (const std::int64_t m : {1, 16, 64, 100, 128, 512, 2048, 8192})
    for (const Accumulation accumulation : {Accumulation::fast, Accumulation::promote}) {
      problem::Gemm op = gemm(m, 7168, 5120);
      op.accumulation = accumulation;
      const auto found = kernels(op);
      ASSERT_EQ(found.size(), 1U);
      EXPECT_EQ(found[0].kernel, "gemm/dense_fp8");
      EXPECT_LE(found[0].shared_bytes, 227 * 1024);
      EXPECT_EQ(std::get<std::int64_t>(found[0].constants.at("block_m")) * 2 *
                        std::get<std::int64_t>(found[0].constants.at("k_split")) +
                    128,
                found[0].threads);
    }
}

TEST(GemmConfigure, SmallProblemsGetSmallTiles) {
  const auto rows = [](std::int64_t m) {
    return std::get<std::int64_t>(kernels(gemm(m, 7168, 5120)).at(0).constants.at("block_m"));
  };
  EXPECT_EQ(rows(16), 64);
  EXPECT_GE(rows(8192), 128);
}

TEST(GemmConfigure, OtherTargetsGetTheGeneralKernel) {
  for (const char* target : {"sm_100a", "sm_103a", "sm_120a"}) {
    const auto found = kernels(gemm(512, 7168, 5120), target);
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].kernel, "gemm/general");
  }
}

TEST(GemmConfigure, UnalignedPitchesGetTheGeneralKernel) {
  EXPECT_EQ(kernels(gemm(512, 7168, 5121)).at(0).kernel, "gemm/general");
  problem::Gemm padded = gemm(512, 7168, 5121);
  padded.a.tensor.ld = padded.b.tensor.ld = 5136;
  EXPECT_EQ(kernels(padded).at(0).kernel, "gemm/dense_fp8");
  EXPECT_EQ(kernels(gemm(512, 7168, 0)).at(0).kernel, "gemm/general");
}

// Every problem inside the range is served by what the range yields, and by nothing more where only M varies.
TEST(GemmConfigure, ARangeYieldsWhatItsProblemsGet) {
  int turn = 0;
  for (const Accumulation accumulation : {Accumulation::fast, Accumulation::promote})
    for (const auto& [n, k] :
         {std::pair<int, int>{7168, 2048}, {24576, 1536}, {512, 128}, {12288, 512}, {2560, 1024}}) {
      if (turn++ % test::stride(4) != 0) continue;
      problem::Gemm range = gemm({1, 3000}, n, k);
      range.accumulation = accumulation;
      const auto of_range = kernels(range);
      std::vector<Configuration> seen;
      for (std::int64_t m = 1; m <= 3000; ++m) {
        problem::Gemm op = gemm(m, n, k);
        op.accumulation = accumulation;
        for (const Configuration& one : kernels(op))
          if (std::ranges::find(seen, one) == seen.end()) seen.push_back(one);
      }
      std::ranges::sort(seen);
      EXPECT_EQ(of_range, seen) << n << " " << k;
    }
}

// The copy engine would write over the end of D's rows.
TEST(GemmConfigure, RowsOfDThatAreNoWholePiecesAreStoredByThreads) {
  const auto bulk = [](const problem::Gemm& op) {
    std::vector<bool> found;
    for (const Configuration& one : kernels(op))
      found.push_back(std::get<bool>(one.constants.at("tma_store")));
    return found;
  };
  problem::Gemm op = gemm(512, 136, 5120);
  op.d.tensor.ld = 144;
  EXPECT_EQ(bulk(op), std::vector<bool>{true});
  op.b.tensor.shape[0] = 129;
  EXPECT_EQ(bulk(op), std::vector<bool>{false});
  op.d.tensor.dtype = DType::e4m3;
  op.b.tensor.shape[0] = 136;
  EXPECT_EQ(bulk(op), std::vector<bool>{false});
}

TEST(GemmConfigure, BatchInvariantRangesYieldOneKernel) {
  problem::Gemm range = gemm({1, 100000}, 7168, 5120);
  EXPECT_GT(kernels(range).size(), 1U);
  range.batch_invariant = true;
  EXPECT_EQ(kernels(range).size(), 1U);
}

TEST(GemmConfigure, AmaxBesideABiasGetsTheGeneralKernel) {
  problem::Gemm op = gemm(16, 32, 64);
  op.d.amax = true;
  EXPECT_EQ(kernels(op).at(0).kernel, "gemm/dense_fp8");
  op.bias = DType::bf16;
  EXPECT_EQ(kernels(op).at(0).kernel, "gemm/general");
}

problem::OperandScaling by_blocks(int rows) {
  return {.kind = Scaling::fp32, .block = {.rows = rows, .cols = 128}};
}

TEST(GemmConfigure, GatesThatTheHopperKernelTakes) {
  const auto kernel = [](problem::Extent n, bool interleave, bool blocks) {
    problem::Gemm op = gemm(300, n, 512);
    op.epilogue = problem::Swiglu{.interleave = interleave, .alpha = 1.0, .limit = {}};
    if (blocks) op.a.scaling = by_blocks(1), op.b.scaling = by_blocks(128);
    std::vector<std::string> found;
    for (const Configuration& one : kernels(op)) found.push_back(one.kernel);
    found.erase(std::unique(found.begin(), found.end()), found.end());
    return found;
  };
  const std::vector<std::string> hopper = {"gemm/dense_fp8"}, general = {"gemm/general"},
                                 both = {"gemm/dense_fp8", "gemm/general"};
  for (const bool interleave : {false, true})
    for (const bool blocks : {false, true}) {
      EXPECT_EQ(kernel(512, interleave, blocks), hopper);
      EXPECT_EQ(kernel(520, interleave, blocks), general);
      EXPECT_EQ(kernel(528, interleave, blocks), blocks && !interleave ? general : hopper);
      EXPECT_EQ(kernel({512, 528}, interleave, blocks), both);
    }
}

// A tile's columns of D are whole boxes, and whole blocks where each gets a scale.
TEST(GemmConfigure, TilesHoldWholeBlocksOfD) {
  for (const bool gated : {false, true})
    for (const std::optional<Scaling> scaling :
         {std::optional<Scaling>{}, std::optional(Scaling::mx), std::optional(Scaling::fp32)})
      for (const char* base : {"fast", "promote", "blocks"}) {
        GemmTraits traits;
        traits.a.form = traits.b.form = GemmTraits::Form::row;
        if (base[0] == 'f') traits.accumulation = Accumulation::fast;
        if (base[0] == 'b') traits.b.form = GemmTraits::Form::block, traits.b.block_rows = 128;
        if (gated) traits.epilogue = Epilogue::swiglu;
        if (scaling) traits.requant = GemmTraits::Requant{.scaling = *scaling};
        const int block = scaling == Scaling::fp32 ? 128 : 32, products = gated ? 2 : 1;
        const auto tiles = gemm_tiles(traits);
        EXPECT_FALSE(tiles.empty());
        for (const GemmTile& tile : tiles) EXPECT_EQ(tile.n % (block * products), 0) << tile_name(tile);
      }
}

// After SwiGLU a row of D has half as many columns.
TEST(GemmConfigure, RowsOfDAfterSwigluAreHalfAsLong) {
  const auto bulk = [](std::int64_t n, DType d) {
    problem::Gemm op = gemm(512, n, 5120);
    op.epilogue = problem::Swiglu{};
    op.d.tensor.dtype = d;
    op.d.tensor.ld = n;
    op.d.tensor.align = 16;
    return std::get<bool>(kernels(op).at(0).constants.at("tma_store"));
  };
  EXPECT_TRUE(bulk(272, DType::bf16));
  EXPECT_FALSE(bulk(272, DType::e4m3));
  EXPECT_TRUE(bulk(288, DType::e4m3));
}

TEST(GemmConfigure, RangesOfNAndKAreServed) {
  const problem::Gemm range = gemm({1, 600}, {1, 700}, {0, 300});
  const auto of_range = kernels(range);
  std::mt19937 random(1);
  for (int i = 0; i < 500; ++i) {
    const auto draw = [&](int low, int high) { return std::uniform_int_distribution(low, high)(random); };
    const problem::Gemm op = gemm(draw(1, 600), draw(1, 700), draw(0, 300));
    for (const Configuration& one : kernels(op))
      EXPECT_NE(std::ranges::find(of_range, one), of_range.end()) << i;
  }
}

TEST(GemmConfigure, TheModelPrefersWhatWasMeasuredFaster) {
  GemmTraits traits;
  traits.a.form = traits.b.form = GemmTraits::Form::row;
  traits.accumulation = Accumulation::fast;
  const auto tile = [&](std::int64_t m, std::int64_t n, std::int64_t k) {
    return gemm_tiles(traits)[static_cast<std::size_t>(choose_tile(traits, m, n, k, 132))];
  };
  const auto in_turn = GemmTile::Schedule::in_turn;
  EXPECT_EQ(tile(8192, 7168, 5120).schedule, in_turn);
  EXPECT_EQ(tile(8192, 7168, 5120).n, 160);
  EXPECT_EQ(tile(8192, 4096, 7168).n, 128);
  EXPECT_EQ(tile(2048, 24576, 1536).schedule, in_turn);
  EXPECT_NE(tile(512, 5120, 5120).schedule, in_turn);  // a tile each: nothing to alternate with
  EXPECT_EQ(tile(512, 5120, 5120).n, 160);
  EXPECT_EQ(tile(512, 7168, 5120).n, 224);
  EXPECT_EQ(tile(256, 5120, 5120).n, 96);
  EXPECT_EQ(tile(128, 24576, 1536).n, 128);
  EXPECT_EQ(tile(16, 24576, 1536).n, 64);
  traits.accumulation = Accumulation::promote;
  EXPECT_EQ(tile(64, 4096, 7168).k_split, 2);
  EXPECT_EQ(tile(16, 4096, 7168).n, 32);
  EXPECT_EQ(tile(128, 7168, 5120).m, 128);
  EXPECT_EQ(tile(128, 7168, 5120).n, 64);
  EXPECT_EQ(tile(8192, 8192, 8192).m, 192);
  EXPECT_EQ(tile(512, 7168, 5120).n, 224);
  EXPECT_EQ(tile(8192, 5120, 5120).n, 160);
}

TEST(GemmConfigure, WhatHasNoKernelIsRefusedByField) {
  const std::vector<std::pair<std::string, std::function<void(problem::Gemm&)>>> cases = {
      {"/groups", [](problem::Gemm& op) { op.groups = problem::GemmGroups{}; }},
      {"/batch_invariant", [](problem::Gemm& op) {
         op.batch_invariant = true;
         op.a.tensor.shape[0] = std::int64_t{1} << 31;
       }}};
  for (const auto& [field, change] : cases) {
    problem::Gemm op = gemm(16, 32, 64);
    change(op);
    try {
      kernels(op);
      ADD_FAILURE() << field;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::unsupported);
      EXPECT_EQ(error.argument(), field) << error.what();
    }
  }
}

}  // namespace
}  // namespace mxjit::configure
