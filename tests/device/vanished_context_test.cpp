// Contexts that are destroyed or reset under a Context and its plans: an error, no crash. This file's name
// puts it last: a reset takes everything else in the process with it.
#include <cuda.h>
#include <gtest/gtest.h>

#include <optional>

#include "base/dynamic_library.hpp"
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

class VanishedContext : public DeviceTest {};

TEST_F(VanishedContext, ADestroyedContextIsAnErrorAndNoCrash) {
  const Machine& machine = Machine::get();
  const driver::Api& api = machine.api();
  const DynamicLibrary libcuda = DynamicLibrary::open("the driver", {"libcuda.so.1"});
  const auto create =
      reinterpret_cast<CUresult (*)(CUcontext*, unsigned, CUdevice)>(libcuda.require("cuCtxCreate_v2"));
  const auto destroy = reinterpret_cast<CUresult (*)(CUcontext)>(libcuda.require("cuCtxDestroy_v2"));
  Random random(26);
  const Problem problem = both_axes_problem(rows, columns);
  const TensorMap inputs = make_inputs(problem, random);
  GuardedProblem guarded(problem, inputs);  // memory of the primary context

  CUcontext own = nullptr;
  driver::check(api, create(&own, 0, 0), "cuCtxCreate");
  const auto device = driver::DeviceContext::current(api);
  ASSERT_EQ(device->handle(), own);
  const auto context =
      dispatch::ContextAccess::make(device, driver::Libraries::process(),
                                    std::make_shared<cache::Cache>(cache::Options::from_environment()));
  const TensorMap outputs = dispatch::run_on_device(*context, problem, inputs);
  expect_equal(outputs, reference::run(problem, inputs));
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

TEST_F(VanishedContext, AResetPrimaryContextIsLostAndAnotherLoadsAgain) {
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
