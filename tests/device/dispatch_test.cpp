// Dispatch on a real driver: captures with nothing loaded, lost contexts, foreign pointers, held plans, empty
// tensors.
#include <cuda.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "base/dynamic_library.hpp"
#include "device/guarded.hpp"
#include "device/machine.hpp"
#include "device/problems.hpp"
#include "mxjit/error.hpp"
#include "reference/reference.hpp"

namespace mxjit::device {
namespace {

using problem::Problem;

class DispatchOnDevice : public DeviceTest {};

constexpr std::int64_t rows = 96;
constexpr std::int64_t columns = 160;

QuantizeOptions both_axes() { return {.axes = {.row = true, .col = true}}; }

Problem both_axes_problem(std::int64_t m, std::int64_t n) {
  problem::Quantize quantize;
  quantize.input.shape = {m, n};
  quantize.axes = {.row = true, .col = true};
  return problem::with_defaults({.name = {}, .op = quantize});
}

QuantizeArgs args_of(const GuardedProblem& guarded) {
  const dispatch::DeviceTensors& tensors = guarded.tensors();
  return {.x = tensors.at("x"),
          .q_row = tensors.at("q_row"),
          .s_row = tensors.at("s_row"),
          .q_col = tensors.at("q_col"),
          .s_col = tensors.at("s_col")};
}

template <typename Call>
void expect_error(ErrorCode code, const std::string& argument, Call&& call) {
  try {
    call();
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    EXPECT_EQ(error.argument(), argument) << error.what();
  }
}

TEST_F(DispatchOnDevice, AColdKeyLeavesTheCaptureIntact) {
  const Machine& machine = Machine::get();
  const driver::Api& api = machine.api();
  Random random(20);
  const Problem problem = both_axes_problem(rows, columns);
  const TensorMap inputs = make_inputs(problem, random);
  for (const CUstreamCaptureMode mode :
       {CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, CU_STREAM_CAPTURE_MODE_RELAXED}) {
    GuardedProblem guarded(problem, inputs);
    const QuantizeArgs args = args_of(guarded);
    const auto context = machine.cold_context();
    driver::check(api, api.stream_begin_capture(machine.stream(), mode), "cuStreamBeginCapture");
    expect_error(ErrorCode::not_loaded, "stream",
                 [&] { context->quantize(both_axes(), args, machine.stream()); });
    // Another thread may load meanwhile, and then the same capture takes the launch.
    std::jthread([&] { context->plan(both_axes(), args); }).join();
    context->quantize(both_axes(), args, machine.stream());
    const driver::OwnedGraphExec graph = driver::end_capture(api, machine.stream());
    driver::check(api, api.graph_launch(graph.get(), machine.stream()), "cuGraphLaunch");
    machine.synchronize();
    expect_equal(guarded.read(), reference::run(problem, inputs));
  }
}

TEST_F(DispatchOnDevice, ACaptureTakesAnotherShapeOfALoadedKernel) {
  const Machine& machine = Machine::get();
  const driver::Api& api = machine.api();
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
  driver::check(api, api.stream_begin_capture(machine.stream(), CU_STREAM_CAPTURE_MODE_GLOBAL),
                "cuStreamBeginCapture");
  guarded.launch(*context, machine.stream());
  const driver::OwnedGraphExec graph = driver::end_capture(api, machine.stream());
  driver::check(api, api.graph_launch(graph.get(), machine.stream()), "cuGraphLaunch");
  machine.synchronize();
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

TEST_F(DispatchOnDevice, ADestroyedContextIsAnErrorAndNoCrash) {
  const Machine& machine = Machine::get();
  const driver::Api& api = machine.api();
  const DynamicLibrary libcuda = DynamicLibrary::open("the driver", {"libcuda.so.1"});
  const auto create =
      reinterpret_cast<CUresult (*)(CUcontext*, unsigned, CUdevice)>(libcuda.require("cuCtxCreate_v2"));
  const auto destroy = reinterpret_cast<CUresult (*)(CUcontext)>(libcuda.require("cuCtxDestroy_v2"));
  Random random(26);
  const Problem problem = both_axes_problem(rows, columns);
  const TensorMap inputs = make_inputs(problem, random);

  CUcontext own = nullptr;
  driver::check(api, create(&own, 0, 0), "cuCtxCreate");
  const auto device = driver::DeviceContext::current(api);
  ASSERT_EQ(device->handle(), own);
  const auto context =
      dispatch::ContextAccess::make(device, driver::Libraries::process(),
                                    std::make_shared<cache::Cache>(cache::Options::from_environment()));
  const TensorMap outputs = dispatch::run_on_device(*context, problem, inputs);
  expect_equal(outputs, reference::run(problem, inputs));
  GuardedProblem guarded(problem, inputs);  // memory of the other context: never touched below
  std::optional<QuantizePlan> plan;
  {
    driver::DeviceBuffer memory(api, 1 << 20);
    QuantizeArgs args = args_of(guarded);
    std::uintptr_t next = memory.address();
    for (Tensor* tensor : {&args.x, &args.q_row, &args.s_row, &args.q_col, &args.s_col}) {
      tensor->data = reinterpret_cast<void*>(next);
      next += 1 << 17;
    }
    plan = context->plan(both_axes(), args);
  }
  driver::check(api, destroy(own), "cuCtxDestroy");
  driver::check(api, api.ctx_set_current(machine.device().handle()), "cuCtxSetCurrent");

  const QuantizeArgs args = args_of(guarded);
  expect_error(ErrorCode::context_lost, "", [&] { plan->launch(args, machine.stream()); });
  expect_error(ErrorCode::context_lost, "", [&] { context->quantize(both_axes(), args, machine.stream()); });
  expect_error(ErrorCode::context_lost, "", [&] { context->plan(both_axes(), args); });
}

TEST_F(DispatchOnDevice, AResetPrimaryContextIsLostAndAnotherLoadsAgain) {
  Random random(27);
  const Problem problem = both_axes_problem(rows, columns);
  const TensorMap inputs = make_inputs(problem, random);
  const TensorMap expected = reference::run(problem, inputs);
  Machine::forget();
  const driver::Api& api = driver::api();
  const auto context = dispatch::make_context(0, cache::Options::from_environment());
  expect_equal(dispatch::run_on_device(*context, problem, inputs), expected);
  driver::check(api, api.primary_ctx_reset(0), "cuDevicePrimaryCtxReset");

  expect_error(ErrorCode::context_lost, "", [&] { dispatch::run_on_device(*context, problem, inputs); });
  const auto again = dispatch::make_context(0, cache::Options::from_environment());
  expect_equal(dispatch::run_on_device(*again, problem, inputs), expected);
}

}  // namespace
}  // namespace mxjit::device
