// Calls and held plans of GEMMs: the same bits each time, C in D's place, other extents than planned.
#include <gtest/gtest.h>

#include <vector>

#include "device/gemm_problems.hpp"
#include "device/guarded.hpp"
#include "device/machine.hpp"
#include "device/problems.hpp"
#include "mxjit/error.hpp"
#include "reference/reference.hpp"

namespace mxjit::device {
namespace {

using problem::Gemm;
using problem::Problem;

TEST_F(GemmOnDevice, AHundredLaunchesAreBitEqual) {
  Random random(9);
  const Machine& machine = Machine::get();
  std::vector<Problem> problems;
  const auto add = [&](const char* a, const char* b, Accumulation accumulation) {
    const std::int64_t part = small() ? 4 : 1;
    problems.push_back(whole(make_gemm(611 / part, 1040 / part, 528, a, b, accumulation, DType::bf16)));
  };
  add("row", "row", Accumulation::fast);
  add("row", "row", Accumulation::promote);
  add("128 mn", "128x128", Accumulation::promote);
  add("mx32", "mx32", Accumulation::exact);
  prewarm(problems);
  for (const Problem& problem : problems) {
    SCOPED_TRACE(problem::print(problem));
    GuardedProblem guarded(problem, gemm_inputs(problem, random));
    guarded.launch(machine.context(), machine.stream());
    machine.synchronize();
    const TensorMap first = guarded.read();
    for (int i = 1; i < (small() ? 3 : 100); ++i) {
      guarded.dirty();
      guarded.launch(machine.context(), machine.stream());
      machine.synchronize();
      ASSERT_EQ(guarded.read().at("d").bytes, first.at("d").bytes) << "launch " << i;
    }
  }
}

TEST_F(GemmOnDevice, AccumulatesInPlace) {
  Random random(10);
  for (const DType d : {DType::fp32, DType::bf16}) {
    Gemm gemm = make_gemm(300, 272, 384, "row", "row", Accumulation::promote, d);
    gemm.beta = 1.0;
    const Problem problem = whole(gemm);
    const TensorMap inputs = gemm_inputs(problem, random);
    GuardedProblem guarded(problem, inputs);
    dispatch::GemmCall call = dispatch::gemm_call(gemm, guarded.tensors());
    call.args.c = call.args.d;
    const Machine& machine = Machine::get();
    driver::check(
        machine.api(),
        machine.api().memcpy_d2d_async(reinterpret_cast<CUdeviceptr>(call.args.d.data),
                                       reinterpret_cast<CUdeviceptr>(guarded.tensors().at("c").data),
                                       inputs.at("c").bytes.size(), machine.stream()),
        "cuMemcpyDtoDAsync");
    machine.context().gemm(call.options, call.args, machine.stream());
    machine.synchronize();
    EXPECT_LE(relative_error(guarded.read().at("d"), reference::run(problem, inputs).at("d")),
              tolerance(gemm));
  }
}

TEST_F(GemmOnDevice, PlansTakeOtherExtents) {
  Random random(11);
  const Machine& machine = Machine::get();
  const Gemm planned = make_gemm(64, 128, 256, "row", "row", Accumulation::promote, DType::bf16);
  const Problem problem = whole(planned);
  GuardedProblem guarded(problem, gemm_inputs(problem, random));
  const dispatch::GemmCall call = dispatch::gemm_call(planned, guarded.tensors());
  const GemmPlan plan = machine.context().plan(call.options, call.args);

  const Gemm other = make_gemm(777, 320, 512, "row", "row", Accumulation::promote, DType::bf16);
  const Problem others = whole(other);
  const TensorMap inputs = gemm_inputs(others, random);
  GuardedProblem larger(others, inputs);
  plan.launch(dispatch::gemm_call(other, larger.tensors()).args, machine.stream());
  machine.synchronize();
  EXPECT_LE(relative_error(larger.read().at("d"), reference::run(others, inputs).at("d")), tolerance(other));

  GemmArgs changed = call.args;
  changed.a.dtype = DType::e5m2;
  EXPECT_THROW(plan.launch(changed, machine.stream()), Error);
}

}  // namespace
}  // namespace mxjit::device
