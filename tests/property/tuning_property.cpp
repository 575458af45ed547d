// Laws of measured choices, over random problems and tables.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <random>

#include "configure/configure.hpp"
#include "configure/tuning_table.hpp"
#include "loops.hpp"
#include "mxjit/error.hpp"
#include "problem/layout.hpp"
#include "property/problem_generator.hpp"

namespace mxjit::configure {
namespace {

constexpr std::uint64_t seed = 20260;

// Problems that the Hopper kernel takes come up often; others, too.
problem::Gemm any_gemm(problem::ProblemGenerator& generator, std::mt19937_64& random) {
  const auto draw = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  problem::Gemm gemm = generator.gemm();
  gemm.groups.reset();
  for (problem::Operand* operand : {&gemm.a, &gemm.b}) {
    operand->tensor.ld.reset();
    operand->tensor.align.reset();
    if (draw(0, 3) == 0) continue;
    operand->mn_major = false;
    operand->tensor.dtype = DType::e4m3;
    if (operand->scaling && operand->scaling->kind == Scaling::mx) operand->scaling.reset();
  }
  if (draw(0, 3) > 0 && gemm.accumulation == Accumulation::exact) gemm.accumulation = Accumulation::promote;
  gemm.d.tensor.ld.reset();
  gemm.d.tensor.align.reset();
  gemm.bias_pitch = {};
  const std::size_t rank = gemm.a.tensor.shape.size();
  if (rank == gemm.b.tensor.shape.size()) {
    const problem::Extent k(draw(1, 40) * 64);
    gemm.a.tensor.shape[rank - 1] = gemm.b.tensor.shape[rank - 1] = k;
    gemm.a.tensor.shape[rank - 2] = draw(1, 3000);
    gemm.b.tensor.shape[rank - 2] = draw(1, 40) * 48;
  }
  return gemm;
}

// Whatever a table says, the configuration is one of those that a problem can get, and it is in what a
// prewarm of any range around the problem compiles with that table.
TEST(TuningProperty, AnyEntryGivesAConfigurationOfTheSet) {
  std::cout << "seed " << seed << "\n";
  problem::ProblemGenerator generator(seed);
  std::mt19937_64 random(seed);
  const Profile& profile = configure::profile("h200");
  int tuned = 0, changed = 0;
  for (int round = 0; round < 4000 / test::stride(5); ++round) {
    problem::Problem problem{"", any_gemm(generator, random)};
    std::vector<Configuration> of_model;
    try {
      problem::validate(problem);
      problem = problem::with_defaults(problem);
      of_model = configure::configure(problem, profile);
    } catch (const Error&) {
      continue;
    }
    const auto& gemm = std::get<problem::Gemm>(problem.op);
    const GemmTraits traits = gemm_traits(gemm);
    const problem::GemmExtents extents = problem::gemm_extents(gemm);
    const auto tiles = gemm_tiles(traits);
    GemmTuning tuning;
    const int tile = std::uniform_int_distribution<int>(0, static_cast<int>(tiles.size()) - 1)(random);
    tuning.set(gemm_class(traits, extents.m.max, extents.n.max, extents.k.max), tile);
    const std::vector<Configuration> chosen = configure::configure(problem, profile, &tuning);
    ASSERT_EQ(chosen.size(), of_model.size()) << problem::print(problem);

    std::vector<Configuration> possible = {general_configuration(traits)};
    for (const bool bulk_store : {false, true})
      for (const GemmTile& one : tiles) {
        GemmTraits with = traits;
        with.bulk_store = bulk_store;
        with.bulk_loads = true;
        possible.push_back(dense_fp8_configuration(with, one));
        with.bulk_loads = traits.bulk_loads;
        possible.push_back(dense_fp8_configuration(with, one));
      }
    for (bool loads : {false, true}) {
      GemmTraits with = traits;
      with.bulk_loads = loads;
      possible.push_back(general_configuration(with));
    }
    for (const Configuration& one : chosen)
      ASSERT_NE(std::ranges::find(possible, one), possible.end()) << problem::print(problem);
    if (is_dense_fp8(traits, profile)) {
      ++tuned;
      changed += chosen != of_model ? 1 : 0;
      EXPECT_NE(
          std::ranges::find(chosen, dense_fp8_configuration(traits, tiles[static_cast<std::size_t>(tile)])),
          chosen.end())
          << problem::print(problem);
    } else {
      EXPECT_EQ(chosen, of_model) << problem::print(problem);
    }

    problem::Gemm range = gemm;
    const std::size_t rank = range.a.tensor.shape.size();
    range.a.tensor.shape[rank - 2] =
        problem::Extent{std::max<std::int64_t>(extents.m.max - 70, 0), extents.m.max + 200};
    range.d.tensor.shape.clear();
    const std::vector<Configuration> prewarmed = configure::configure({"", range}, profile, &tuning);
    for (const Configuration& one : chosen)
      EXPECT_NE(std::ranges::find(prewarmed, one), prewarmed.end()) << problem::print(problem);
  }
  EXPECT_GT(tuned, 300 / test::stride(5));
  EXPECT_GT(changed, 200 / test::stride(5));
}

}  // namespace
}  // namespace mxjit::configure
