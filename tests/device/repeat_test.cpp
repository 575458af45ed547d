// The same launch again: repeated, replayed from a CUDA graph, and on two streams from two threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <thread>
#include <vector>

#include "device/guarded.hpp"
#include "device/machine.hpp"
#include "device/ops_problems.hpp"
#include "device/problems.hpp"
#include "reference/reference.hpp"

namespace mxjit::device {
namespace {

using problem::Problem;

class Repeats : public DeviceTest {};

// One problem for every way in which bytes move: axes, layout of scales and of the input; bf16, rceil.
std::vector<Problem> movers(std::int64_t m, std::int64_t n) {
  std::vector<Problem> list = supported(combinations());
  std::erase_if(list, [](const Problem& problem) {
    const auto& quantize = std::get<problem::Quantize>(problem.op);
    return quantize.input.dtype != DType::bf16 || quantize.recipe.format != DType::e4m3 ||
           (quantize.recipe.rounding != Rounding::rceil && quantize.recipe.rounding != Rounding::none);
  });
  for (Problem& problem : list) {
    auto& quantize = std::get<problem::Quantize>(problem.op);
    const std::size_t rank = quantize.input.shape.size();
    quantize.input.shape[rank - 2] = m;
    quantize.input.shape[rank - 1] = n;
    quantize.input.ld.reset();
    quantize.input.align.reset();
    problem = problem::with_defaults(problem);
  }
  return list;
}

// Groups of every recipe, and every small op in each of its forms.
std::vector<Problem> groups_and_ops() {
  std::vector<Problem> list = supported(groupings());
  std::erase_if(list, [](const Problem& problem) {
    return std::get<problem::Quantize>(problem.op).groups->count != 40;
  });
  for (const Problem& problem : dequantizations()) {
    const auto& op = std::get<problem::Dequantize>(problem.op);
    if (op.q.dtype == DType::e4m3 && op.output == DType::bf16 && op.q.shape.size() == 2)
      list.push_back(problem);
  }
  for (const Problem& problem : packs()) {
    const problem::Shape& shape = std::get<problem::PackScales>(problem.op).shape;
    if (shape[shape.size() - 2].max == 300 && shape.back().max == 43) list.push_back(problem);
  }
  for (const Problem& problem : pads()) {
    const auto& op = std::get<problem::PadGroups>(problem.op);
    if (op.input.shape[0].max == 257 && op.input.shape[1].max == 130 && op.alignment != 1)
      list.push_back(problem);
  }
  return list;
}

void expect_equal_launches(const std::vector<Problem>& problems, Random random) {
  const Machine& machine = Machine::get();
  const int launches = small() ? 3 : 100;
  prewarm(problems);
  for (const Problem& problem : problems) {
    SCOPED_TRACE(problem::print(problem));
    const TensorMap inputs = any_inputs(problem, random);
    GuardedProblem guarded(problem, inputs);
    const TensorMap expected = comparable(problem, reference::run(problem, inputs));
    for (int i = 0; i < launches; ++i) {
      guarded.dirty();
      guarded.launch(machine.context(), machine.stream());
      machine.synchronize();
      const TensorMap got = comparable(problem, guarded.read());
      ASSERT_NO_FATAL_FAILURE(expect_equal(got, expected)) << "launch " << i;
      if (testing::Test::HasFailure()) return;
    }
  }
}

// Captured once, replayed for the same values and, `others` times, for other ones, group ends among them.
void expect_equal_replays(const std::vector<Problem>& problems, CUstreamCaptureMode mode, int others,
                          Random& random) {
  const Machine& machine = Machine::get();
  prewarm(problems);
  for (const Problem& problem : problems) {
    SCOPED_TRACE(problem::print(problem));
    TensorMap inputs = any_inputs(problem, random);
    GuardedProblem guarded(problem, inputs);
    guarded.launch(machine.context(), machine.stream());
    machine.synchronize();
    expect_equal(comparable(problem, guarded.read()), comparable(problem, reference::run(problem, inputs)));

    const driver::OwnedGraphExec graph =
        machine.captured([&] { guarded.launch(machine.context(), machine.stream()); }, mode);
    for (int i = 0; i <= others; ++i) {
      if (i > 0) {
        inputs = any_inputs(problem, random);
        guarded.refill(inputs);
      }
      guarded.dirty();
      machine.run(graph);
      expect_equal(comparable(problem, guarded.read()), comparable(problem, reference::run(problem, inputs)));
    }
  }
}

TEST_F(Repeats, AHundredLaunchesAreBitEqual) {
  expect_equal_launches(thinned(movers(517, 389), 11), Random(10));
}
TEST_F(Repeats, AHundredLaunchesOfGroupsAndOpsAreBitEqual) {
  expect_equal_launches(thinned(groups_and_ops(), 11), Random(15));
}

TEST_F(Repeats, LaunchesBackToBackAreBitEqual) {
  // Without a pause between launches: the second starts while the first ends.
  const Machine& machine = Machine::get();
  Random random(11);
  for (const Problem& problem : thinned(movers(1029, 645), 17)) {
    SCOPED_TRACE(problem::print(problem));
    const TensorMap inputs = make_inputs(problem, random);
    GuardedProblem guarded(problem, inputs);
    for (int i = 0; i < (small() ? 3 : 100); ++i) guarded.launch(machine.context(), machine.stream());
    machine.synchronize();
    expect_equal(guarded.read(), reference::run(problem, inputs));
  }
}

constexpr CUstreamCaptureMode modes[] = {CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
                                         CU_STREAM_CAPTURE_MODE_RELAXED};

TEST_F(Repeats, GraphReplayEqualsEagerAndTheReferenceForOtherValues) {
  Random random(12);
  for (const CUstreamCaptureMode mode : modes)
    expect_equal_replays(thinned(movers(130, 259), 13), mode, 1, random);
}

TEST_F(Repeats, OneCaptureServesOtherGroups) {
  Random random(16);
  expect_equal_replays(thinned(groups_and_ops(), 9), CU_STREAM_CAPTURE_MODE_GLOBAL, small() ? 2 : 6, random);
}

TEST_F(Repeats, AGraphOutlivesTheContextItWasCapturedWith) {
  const Machine& machine = Machine::get();
  Random random(13);
  const Problem problem = movers(200, 96).front();
  const TensorMap inputs = make_inputs(problem, random);
  GuardedProblem guarded(problem, inputs);
  std::optional<driver::OwnedGraphExec> graph;
  {
    const auto context = machine.cold_context();
    guarded.launch(*context, machine.stream());
    graph = machine.captured([&] { guarded.launch(*context, machine.stream()); });
    machine.synchronize();
  }
  guarded.dirty();
  machine.run(*graph);
  expect_equal(guarded.read(), reference::run(problem, inputs));
}

TEST_F(Repeats, TwoThreadsWithTwoStreams) {
  const Machine& machine = Machine::get();
  const std::vector<Problem> problems = thinned(movers(301, 417), 17);
  // Everything is cold, so the threads also race to load.
  const auto context = machine.cold_context();
  std::vector<std::jthread> threads;
  for (int t = 0; t < 2; ++t)
    threads.emplace_back([&, t] {
      const driver::ScopedCurrent scope(machine.device());
      const driver::OwnedStream stream = driver::make_stream(machine.api());
      Random random(static_cast<std::uint64_t>(14 + t));
      for (const Problem& problem : problems) {
        const TensorMap inputs = make_inputs(problem, random);
        GuardedProblem guarded(problem, inputs);
        for (int i = 0; i < (small() ? 2 : 25); ++i) guarded.launch(*context, stream.get());
        driver::check(machine.api(), machine.api().stream_synchronize(stream.get()), "cuStreamSynchronize");
        expect_equal(guarded.read(), reference::run(problem, inputs));
      }
    });
}

}  // namespace
}  // namespace mxjit::device
