// Dispatch on a real driver: captures with nothing loaded, lost contexts, foreign pointers, held plans, empty
// tensors.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>
#include <vector>

#include "device/both_axes.hpp"
#include "device/guarded.hpp"
#include "device/machine.hpp"
#include "device/problems.hpp"
#include "reference/reference.hpp"
#include "unit/refusal.hpp"

namespace mxjit::device {
namespace {

using problem::Problem;
using test::expect_error;

class DispatchOnDevice : public DeviceTest {};

TEST_F(DispatchOnDevice, AColdKeyLeavesTheCaptureIntact) {
  const Machine& machine = Machine::get();
  Random random(20);
  const Problem problem = both_axes_problem(rows, columns);
  const TensorMap inputs = make_inputs(problem, random);
  for (const CUstreamCaptureMode mode :
       {CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, CU_STREAM_CAPTURE_MODE_RELAXED}) {
    GuardedProblem guarded(problem, inputs);
    const QuantizeArgs args = args_of(guarded);
    const auto context = machine.cold_context();
    machine.run(machine.captured(
        [&] {
          expect_error(ErrorCode::not_loaded, "stream",
                       [&] { context->quantize(both_axes(), args, machine.stream()); });
          // Another thread may load meanwhile, and then the same capture takes the launch.
          std::jthread([&] { context->plan(both_axes(), args); }).join();
          context->quantize(both_axes(), args, machine.stream());
        },
        mode));
    expect_equal(guarded.read(), reference::run(problem, inputs));
  }
}

TEST_F(DispatchOnDevice, A49AForkedChildIsRefusedAndTheParentGoesOn) {
  const Machine& machine = Machine::get();
  Random random(29);
  const Problem problem = both_axes_problem(rows, columns);
  const TensorMap inputs = make_inputs(problem, random);
  GuardedProblem guarded(problem, inputs);
  const QuantizeArgs args = args_of(guarded);
  const auto context = machine.cold_context();
  const QuantizePlan plan = context->plan(both_axes(), args);
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    const auto refused = [](ErrorCode code, const auto& call) {
      try {
        call();
      } catch (const Error& error) {
        return error.code() == code;
      }
      return false;
    };
    const bool all =
        refused(ErrorCode::context_lost, [&] { context->quantize(both_axes(), args, machine.stream()); }) &&
        refused(ErrorCode::context_lost, [&] { plan.launch(args, machine.stream()); }) &&
        refused(ErrorCode::unavailable, [] { const Context fresh; });
    ::_exit(all ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  plan.launch(args, machine.stream());
  machine.synchronize();
  expect_equal(guarded.read(), reference::run(problem, inputs));
}

TEST_F(DispatchOnDevice, ACaptureTakesAnotherShapeOfALoadedKernel) {
  const Machine& machine = Machine::get();
  Random random(21);
  const auto context = machine.cold_context();
  const Problem first = both_axes_problem(rows, columns);
  GuardedProblem warm(first, make_inputs(first, random));
  warm.launch(*context, machine.stream());
  machine.synchronize();
  const Problem second =
      both_axes_problem(5 * rows + 1, columns);  // another bucket: another plan, the same kernel
  const TensorMap inputs = make_inputs(second, random);
  GuardedProblem guarded(second, inputs);
  machine.run(machine.captured([&] { guarded.launch(*context, machine.stream()); }));
  expect_equal(guarded.read(), reference::run(second, inputs));
}

TEST_F(DispatchOnDevice, AHeldPlanLaunchesWhatTheOneCallEntryDoes) {
  const Machine& machine = Machine::get();
  Random random(22);
  const Problem problem = both_axes_problem(rows, columns);
  const TensorMap inputs = make_inputs(problem, random);
  GuardedProblem guarded(problem, inputs);
  auto context = machine.cold_context();
  const QuantizePlan plan = context->plan(both_axes(), args_of(guarded));
  context.reset();  // the plan keeps what it needs
  plan.launch(args_of(guarded), machine.stream());
  machine.synchronize();
  expect_equal(guarded.read(), reference::run(problem, inputs));

  // M inside the bucket of 65 to 128, then past it.
  const Problem within = both_axes_problem(128, columns);
  const TensorMap more = make_inputs(within, random);
  GuardedProblem larger(within, more);
  plan.launch(args_of(larger), machine.stream());
  machine.synchronize();
  expect_equal(larger.read(), reference::run(within, more));
  const Problem past = both_axes_problem(129, columns);
  const GuardedProblem refused(past, make_inputs(past, random));
  expect_error(ErrorCode::invalid_argument, "x", [&] { plan.launch(args_of(refused), machine.stream()); });
}

TEST_F(DispatchOnDevice, LaunchesFromAThreadWithoutACurrentContext) {
  const Machine& machine = Machine::get();
  Random random(23);
  const Problem problem = both_axes_problem(rows, columns);
  const TensorMap inputs = make_inputs(problem, random);
  GuardedProblem guarded(problem, inputs);
  const auto context = machine.cold_context();
  std::jthread([&] {
    context->quantize(both_axes(), args_of(guarded), machine.stream());
    context->quantize(both_axes(), args_of(guarded), machine.stream());
    CUcontext current = nullptr;
    machine.api().ctx_get_current(&current);
    EXPECT_EQ(current, nullptr) << "the thread's context was not put back";
  }).join();
  machine.synchronize();
  expect_equal(guarded.read(), reference::run(problem, inputs));
}

TEST_F(DispatchOnDevice, EmptyTensorsLaunchNothingAndTouchNothing) {
  Random random(24);
  for (const ScaleLayout layout : {ScaleLayout::plain, ScaleLayout::blocked})
    for (const auto& shape : {std::pair<std::int64_t, std::int64_t>{0, 64}, {64, 0}, {0, 0}}) {
      Problem problem = both_axes_problem(shape.first, shape.second);
      std::get<problem::Quantize>(problem.op).recipe.scale_layout = layout;
      expect_reference(problem, make_inputs(problem, random));
    }
}

TEST_F(DispatchOnDevice, RefusesHostPointersByName) {
  const Machine& machine = Machine::get();
  Random random(25);
  const Problem problem = both_axes_problem(rows, columns);
  const GuardedProblem guarded(problem, make_inputs(problem, random));
  std::vector<std::uint8_t> host(rows * columns * 2);
  const auto context = machine.cold_context();
  for (const auto& [name, member] :
       {std::pair{"x", &QuantizeArgs::x}, {"q_row", &QuantizeArgs::q_row}, {"s_col", &QuantizeArgs::s_col}}) {
    QuantizeArgs args = args_of(guarded);
    (args.*member).data = host.data();
    expect_error(ErrorCode::invalid_argument, name, [&] { context->plan(both_axes(), args); });
    expect_error(ErrorCode::invalid_argument, name,
                 [&] { context->quantize(both_axes(), args, machine.stream()); });
  }
}

}  // namespace
}  // namespace mxjit::device
