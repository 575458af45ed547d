// Every tile of the Hopper GEMM kernel, whatever the model would choose, against the fp64 reference.
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <tuple>
#include <vector>

#include "device/gemm_problems.hpp"
#include "device/guarded.hpp"
#include "device/machine.hpp"
#include "device/problems.hpp"
#include "reference/reference.hpp"

namespace mxjit::device {
namespace {

using problem::Gemm;
using problem::Problem;

// Every tile, whatever the model would choose, over tails of M, N and K and over several tiles a block.
TEST_F(GemmOnDevice, EveryTile) {
  Random random(1);
  const Machine& machine = Machine::get();
  auto& state = dispatch::ContextAccess::state(machine.context());
  if (machine.device().facts().target != "sm_90a") GTEST_SKIP() << "the tiles are sm_90a's";
  struct Case {
    const char *a, *b;
    Accumulation accumulation;
  };
  constexpr std::array cases = {Case{"row", "row", Accumulation::fast},
                                Case{"row", "row", Accumulation::promote},
                                Case{"128 mn", "128x128", Accumulation::promote}};
  const std::vector<std::array<std::int64_t, 3>> extents = {{333, 720, 528}, {1, 64, 16}, {1500, 1296, 272}};
  std::vector<codegen::KernelDescriptor> kernels;
  for (const bool launch : {false, true}) {
    for (const Case& each : cases)
      for (const DType d : {DType::fp32, DType::bf16})
        for (const auto& [m, n, k] : extents) {
          if ((small() || !launch) && m > 1) continue;
          const Gemm gemm = make_gemm(m, n, k, each.a, each.b, each.accumulation, d);
          const Problem problem = whole(gemm);
          SCOPED_TRACE(problem::print(problem));
          const TensorMap inputs = gemm_inputs(problem, random);
          GuardedProblem guarded(problem, inputs);
          const dispatch::GemmCall call = dispatch::gemm_call(gemm, guarded.tensors());
          const dispatch::GemmSizes sizes = dispatch::check_gemm(call.options, call.args);
          dispatch::GemmKey key{.traits = dispatch::gemm_traits(call.options, call.args), .tile = 0};
          ASSERT_TRUE(key.traits.bulk_loads);
          const auto tiles = configure::gemm_tiles(key.traits);
          const HostTensor expected = launch ? reference::run(problem, inputs).at("d") : HostTensor{};
          for (; key.tile < tiles.size(); ++key.tile) {
            if (!launch) {
              kernels.push_back({dispatch::gemm_configuration(key), machine.device().facts().target});
              continue;
            }
            SCOPED_TRACE(testing::Message() << "tile " << tiles[key.tile].m << " x " << tiles[key.tile].n);
            guarded.dirty();
            const auto plan =
                state.gemm_plans.get(key, [&] { return state.make_gemm_plan(call.options, call.args, key); });
            plan->launch(call.args, sizes, machine.stream());
            machine.synchronize();
            EXPECT_LE(relative_error(guarded.read().at("d"), expected), tolerance(gemm));
          }
        }
    if (!launch) prewarm_kernels(kernels);
  }
}

// A block that computes tile after tile, with as few blocks of K as make a difference to large tiles.
TEST_F(GemmOnDevice, SeveralTilesABlock) {
  Random random(2);
  const Machine& machine = Machine::get();
  auto& state = dispatch::ContextAccess::state(machine.context());
  if (machine.device().facts().target != "sm_90a") GTEST_SKIP() << "the tiles are sm_90a's";
  for (const auto& [a, b, accumulation] :
       {std::tuple{"row", "row", Accumulation::fast}, std::tuple{"row", "row", Accumulation::promote},
        std::tuple{"128 mn", "128x128", Accumulation::promote},
        std::tuple{"128", "128x128", Accumulation::promote}})
    for (unsigned turn = 0; const std::int64_t k : {16, 256, 384, 512, 656, 2192, 640}) {
      ++turn;
      if (k == 2192 && std::string(b) != "128x128") continue;  // for factors of more than one chunk of K
      // Tiles in turn come to an even number or, with that K, to an odd one.
      const bool odd = k == 640;
      const Gemm gemm = odd ? make_gemm(300, 100, k, a, b, accumulation, DType::bf16)
                            : make_gemm(200, 264, k, a, b, accumulation, DType::bf16);
      const Problem problem = whole(gemm);
      SCOPED_TRACE(problem::print(problem));
      const TensorMap inputs = gemm_inputs(problem, random);
      const HostTensor expected = reference::run(problem, inputs).at("d");
      GuardedProblem guarded(problem, inputs);
      const dispatch::GemmCall call = dispatch::gemm_call(gemm, guarded.tensors());
      const dispatch::GemmSizes sizes = dispatch::check_gemm(call.options, call.args);
      dispatch::GemmKey key{.traits = dispatch::gemm_traits(call.options, call.args), .tile = 0};
      const auto tiles = configure::gemm_tiles(key.traits);
      for (; key.tile < tiles.size(); ++key.tile) {
        if (tiles[key.tile].m < 128 && k != 384 && k != 2192) continue;
        const bool in_turn = tiles[key.tile].schedule == configure::GemmTile::Schedule::in_turn;
        if (small() && k != 384 && !(odd && in_turn) && (key.tile + turn) % 4 != 0) continue;
        SCOPED_TRACE(testing::Message() << "tile " << tiles[key.tile].m << " x " << tiles[key.tile].n);
        auto plan = *state.make_gemm_plan(call.options, call.args, key);
        guarded.dirty();
        plan.recipe.sm_count = 1;
        plan.launch(call.args, sizes, machine.stream());
        machine.synchronize();
        EXPECT_LE(relative_error(guarded.read().at("d"), expected), tolerance(gemm));
      }
    }
}

}  // namespace
}  // namespace mxjit::device
