// The same launch again: repeated, replayed from a CUDA graph, and on two streams from two threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <thread>
#include <vector>

#include "device/guarded.hpp"
#include "device/machine.hpp"
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

TEST_F(Repeats, AHundredLaunchesAreBitEqual) {
  const Machine& machine = Machine::get();
  Random random(10);
  const int launches = small() ? 3 : 100;
  for (const Problem& problem : movers(517, 389)) {
    SCOPED_TRACE(problem::print(problem));
    const TensorMap inputs = make_inputs(problem, random);
    GuardedProblem guarded(problem, inputs);
    const TensorMap expected = reference::run(problem, inputs);
    for (int i = 0; i < launches; ++i) {
      guarded.dirty();
      guarded.launch(machine.context(), machine.stream());
      machine.synchronize();
      const TensorMap got = guarded.read();
      ASSERT_NO_FATAL_FAILURE(expect_equal(got, expected)) << "launch " << i;
      if (HasFailure()) return;
    }
  }
}

TEST_F(Repeats, LaunchesBackToBackAreBitEqual) {
  // Without a pause between launches: the second starts while the first ends.
  const Machine& machine = Machine::get();
  Random random(11);
  for (const Problem& problem : movers(1029, 645)) {
    SCOPED_TRACE(problem::print(problem));
    const TensorMap inputs = make_inputs(problem, random);
    GuardedProblem guarded(problem, inputs);
    for (int i = 0; i < (small() ? 3 : 100); ++i) guarded.launch(machine.context(), machine.stream());
    machine.synchronize();
    expect_equal(guarded.read(), reference::run(problem, inputs));
  }
}

TEST_F(Repeats, GraphReplayEqualsEagerAndTheReferenceForOtherValues) {
  const Machine& machine = Machine::get();
  const driver::Api& api = machine.api();
  Random random(12);
  for (const CUstreamCaptureMode mode :
       {CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, CU_STREAM_CAPTURE_MODE_RELAXED})
    for (const Problem& problem : movers(130, 259)) {
      SCOPED_TRACE(problem::print(problem));
      const TensorMap inputs = make_inputs(problem, random);
      GuardedProblem guarded(problem, inputs);
      guarded.launch(machine.context(), machine.stream());
      machine.synchronize();
      const TensorMap eager = guarded.read();
      expect_equal(eager, reference::run(problem, inputs));

      driver::check(api, api.stream_begin_capture(machine.stream(), mode), "cuStreamBeginCapture");
      guarded.launch(machine.context(), machine.stream());
      const driver::OwnedGraphExec graph = driver::end_capture(api, machine.stream());

      guarded.dirty();
      driver::check(api, api.graph_launch(graph.get(), machine.stream()), "cuGraphLaunch");
      machine.synchronize();
      expect_equal(guarded.read(), eager);

      const TensorMap others = make_inputs(problem, random);
      guarded.refill(others);
      guarded.dirty();
      driver::check(api, api.graph_launch(graph.get(), machine.stream()), "cuGraphLaunch");
      machine.synchronize();
      expect_equal(guarded.read(), reference::run(problem, others));
    }
}

TEST_F(Repeats, AGraphOutlivesTheContextItWasCapturedWith) {
  const Machine& machine = Machine::get();
  const driver::Api& api = machine.api();
  Random random(13);
  const Problem problem = movers(200, 96).front();
  const TensorMap inputs = make_inputs(problem, random);
  GuardedProblem guarded(problem, inputs);
  std::optional<driver::OwnedGraphExec> graph;
  {
    const auto context = machine.cold_context();
    guarded.launch(*context, machine.stream());
    driver::check(api, api.stream_begin_capture(machine.stream(), CU_STREAM_CAPTURE_MODE_GLOBAL),
                  "cuStreamBeginCapture");
    guarded.launch(*context, machine.stream());
    graph = driver::end_capture(api, machine.stream());
    machine.synchronize();
  }
  guarded.dirty();
  driver::check(api, api.graph_launch(graph->get(), machine.stream()), "cuGraphLaunch");
  machine.synchronize();
  expect_equal(guarded.read(), reference::run(problem, inputs));
}

TEST_F(Repeats, TwoThreadsWithTwoStreams) {
  const Machine& machine = Machine::get();
  const std::vector<Problem> problems = movers(301, 417);
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
