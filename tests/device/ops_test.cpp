// dequantize, pack_scales, unpack_scales, pad_groups and unpad_groups against the reference, between guard
// zones, on dirty outputs; and with faulty groups, where nothing outside the outputs may change.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <limits>
#include <vector>

#include "device/guarded.hpp"
#include "device/machine.hpp"
#include "device/ops_problems.hpp"
#include "dispatch/run.hpp"
#include "driver/device_buffer.hpp"
#include "reference/reference.hpp"

namespace mxjit::device {
namespace {

using problem::Problem;

class OpsOnDevice : public DeviceTest {};

void expect_op(const Problem& problem, Random& random, const Placement& placement = {}) {
  SCOPED_TRACE(problem::print(problem));
  const TensorMap inputs = ops_inputs(problem, random);
  const TensorMap expected = with_one_nan(reference::run(problem, inputs));
  expect_equal(with_one_nan(run_guarded(problem, inputs, placement)), expected);
}

void expect_all(const std::vector<Problem>& problems, std::uint64_t seed) {
  ASSERT_FALSE(problems.empty());
  prewarm(problems);
  Random random(seed);
  for (const Problem& problem : problems) expect_op(problem, random);
}

void expect_at_any_place(const std::vector<Problem>& problems, std::uint64_t seed) {
  prewarm(problems);
  Random random(seed);
  for (const Problem& problem : problems) {
    const Placement placement{.extra_pitch = static_cast<std::int64_t>(random() % 20),
                              .shift = static_cast<int>(random() % 17),
                              .dirt = static_cast<std::uint8_t>(random())};
    SCOPED_TRACE(testing::Message() << "extra pitch " << placement.extra_pitch << ", shift "
                                    << placement.shift);
    expect_op(problem, random, placement);
  }
}

TEST_F(OpsOnDevice, EveryDequantization) { expect_all(thinned(dequantizations(), 31), 40); }
TEST_F(OpsOnDevice, DequantizationsOfEveryShape) { expect_all(thinned(dequantization_shapes(), 13), 41); }
TEST_F(OpsOnDevice, DequantizationsAtAnyPlace) {
  expect_at_any_place(thinned(dequantization_shapes(), 29), 42);
}
TEST_F(OpsOnDevice, EveryPack) { expect_all(thinned(packs(), 5), 43); }
TEST_F(OpsOnDevice, PacksAtAnyPlace) { expect_at_any_place(thinned(packs(), 7), 44); }
TEST_F(OpsOnDevice, EveryPad) { expect_all(thinned(pads(), 41), 45); }
TEST_F(OpsOnDevice, PadsAtAnyPlace) { expect_at_any_place(thinned(pads(), 53), 46); }

// The problem's inputs through a plan.
template <typename Launch>
void expect_held(const problem::Problem& bare, Random& random, const Launch& plan_and_launch) {
  const Problem problem = problem::with_defaults(bare);
  SCOPED_TRACE(problem::print(problem));
  const TensorMap inputs = ops_inputs(problem, random);
  const GuardedProblem guarded(problem, inputs);
  plan_and_launch(guarded.tensors());
  Machine::get().synchronize();
  expect_equal(guarded.read(), reference::run(problem, inputs));
}

TEST_F(OpsOnDevice, HeldPlansDoWhatTheEntriesDo) {
  const Machine& machine = Machine::get();
  Random random(62);
  auto context = machine.cold_context();
  problem::Dequantize dequantize;
  dequantize.q = {.dtype = DType::e4m3, .shape = {70, 200}, .ld = {}, .align = {}};
  expect_held({.name = {}, .op = dequantize}, random, [&](const auto& tensors) {
    const DequantizeArgs args{
        .q = tensors.at("q"), .s = tensors.at("s"), .x = tensors.at("x"), .offsets = {}};
    const DequantizePlan plan = context->plan(DequantizeOptions{}, args);
    context = machine.cold_context();  // the plan keeps what it needs
    plan.launch(args, machine.stream());
  });
  problem::PackScales pack;
  pack.shape = {130, 9};
  for (const bool unpack : {false, true}) {
    pack.unpack = unpack;
    expect_held({.name = {}, .op = pack}, random, [&](const auto& tensors) {
      const PackScalesArgs args{.s = tensors.at("s"), .s_blocked = tensors.at("s_blocked"), .offsets = {}};
      const PackScalesPlan plan =
          unpack ? context->plan_unpack_scales({}, args) : context->plan_pack_scales({}, args);
      plan.launch(args, machine.stream());
    });
  }
  problem::PadGroups pad;
  pad.input = {.dtype = DType::bf16, .shape = {100, 24}, .ld = {}, .align = {}};
  pad.groups = 4;
  pad.alignment = 32;
  const PadGroupsOptions options{.groups = 4, .alignment = 32};
  expect_held({.name = {}, .op = pad}, random, [&](const auto& tensors) {
    const PadGroupsArgs args{.x = tensors.at("x"),
                             .offsets = tensors.at("offsets"),
                             .x_padded = tensors.at("x_padded"),
                             .starts = tensors.at("starts"),
                             .ends = tensors.at("ends")};
    context->plan(options, args).launch(args, machine.stream());
  });
  pad.unpad = true;
  expect_held({.name = {}, .op = pad}, random, [&](const auto& tensors) {
    const UnpadGroupsArgs args{.x_padded = tensors.at("x_padded"),
                               .offsets = tensors.at("offsets"),
                               .starts = tensors.at("starts"),
                               .x = tensors.at("x")};
    context->plan(options, args).launch(args, machine.stream());
  });
}

// Which groups are faulty, and what the status says of the first of them.
struct Fault {
  std::vector<std::int32_t> offsets;
  std::array<std::int32_t, 4> status;
};

// Launches with inputs that the reference refuses; Guarded sees what is written outside the outputs.
void expect_status(const Problem& problem, const TensorMap& inputs,
                   const std::array<std::int32_t, 4>& expected) {
  SCOPED_TRACE(problem::print(problem));
  const Machine& machine = Machine::get();
  GuardedProblem guarded(problem, inputs);
  driver::DeviceBuffer status(machine.api(), sizeof expected);
  status.fill(0, machine.stream());
  dispatch::DeviceTensors tensors = guarded.tensors();
  tensors["status"] = {.data = status.data(), .dtype = DType::i32, .rank = 1, .shape = {4}};
  dispatch::launch_problem(machine.context(), problem, tensors, machine.stream());
  std::array<std::int32_t, 4> got{};
  status.read(got.data(), sizeof got, machine.stream());
  machine.synchronize();
  EXPECT_EQ(got, expected);
  guarded.read();
}

constexpr std::int32_t least = std::numeric_limits<std::int32_t>::min(),
                       most = std::numeric_limits<std::int32_t>::max();

TEST_F(OpsOnDevice, FaultyGroupsOfADequantization) {
  Random random(47);
  for (const bool axis_col : {false, true}) {
    problem::Dequantize op;
    op.q = {.dtype = DType::e4m3, .shape = {256, 64}, .ld = {}, .align = {}};
    op.block = {.rows = 1, .cols = 32};
    op.scale_layout = ScaleLayout::blocked;
    op.axis_col = axis_col;
    op.groups = problem::MGroups{.count = 4, .alignment = 32};
    const Problem problem = whole(op);
    TensorMap inputs = ops_inputs(problem, random);
    for (const Fault& fault :
         {Fault{{32, 64, 64, 256}, {}}, Fault{{32, 64, 32, 256}, {1, 2, 32, 0}},
          Fault{{64, most, 96, 128}, {2, 1, most, 0}}, Fault{{least, 64, 96, 256}, {2, 0, least, 0}},
          Fault{{32, 65, 129, 257}, {3, 1, 65, 0}}, Fault{{32, 300, 16, -1}, {2, 1, 300, 0}}}) {
      inputs["offsets"] = words(fault.offsets);
      expect_status(problem, inputs, fault.status);
    }
  }
}

TEST_F(OpsOnDevice, FaultyGroupsOfQuantizations) {
  Random random(61);
  std::vector<Problem> problems;
  for (Problem problem : supported(groupings())) {
    auto& quantize = std::get<problem::Quantize>(problem.op);
    if (quantize.groups->count != 3) continue;
    quantize.groups->count = 4;
    problems.push_back(problem::with_defaults(problem));
  }
  problems = thinned(problems, 3);
  prewarm(problems);
  for (const Problem& problem : problems) {  // 771 rows
    const int alignment = std::get<problem::Quantize>(problem.op).groups->alignment;
    TensorMap inputs = make_inputs(problem, random);
    std::vector<Fault> faults = {{{128, 256, 256, 768}, {}},
                                 {{128, 256, 128, 768}, {1, 2, 128, 0}},
                                 {{256, most, 384, 512}, {2, 1, most, 0}},
                                 {{least, 256, 384, 768}, {2, 0, least, 0}},
                                 {{128, 256, 384, 896}, {2, 3, 896, 0}}};
    if (alignment > 1) faults.push_back({{128, 257, 385, 513}, {3, 1, 257, 0}});
    if (alignment > 32) faults.push_back({{128, 256, 288, 640}, {3, 2, 288, 0}});
    for (const Fault& fault : faults) {
      inputs["offsets"] = words(fault.offsets);
      expect_status(problem, inputs, fault.status);
    }
  }
}

TEST_F(OpsOnDevice, FaultyGroupsOfPacks) {
  Random random(48);
  for (const Problem& problem : packs()) {
    const auto& op = std::get<problem::PackScales>(problem.op);
    if (!op.groups || *op.groups != 4 || op.shape[0].max != 300 || op.shape[1].max != 43) continue;
    const std::int32_t limit = op.placement == problem::Placement::m_groups ? 300 : 43;
    TensorMap inputs = ops_inputs(problem, random);
    for (const Fault& fault : {Fault{{3, 3, 20, limit}, {}}, Fault{{9, 20, 3, limit}, {1, 2, 3, 0}},
                               Fault{{9, 20, limit, limit + 1}, {2, 3, limit + 1, 0}},
                               Fault{{-1, 20, 30, limit}, {2, 0, -1, 0}}}) {
      inputs["offsets"] = words(fault.offsets);
      expect_status(problem, inputs, fault.status);
    }
  }
}

TEST_F(OpsOnDevice, FaultyGroupsOfPads) {
  Random random(49);
  for (const bool unpad : {false, true}) {
    problem::PadGroups op;
    op.unpad = unpad;
    op.input = {.dtype = DType::bf16, .shape = {100, 24}, .ld = {}, .align = {}};
    op.groups = 4;
    op.alignment = 32;
    const Problem problem = whole(op);
    TensorMap inputs = ops_inputs(problem, random);
    if (unpad) inputs["starts"] = words({0, 32, 64, 96});
    for (const Fault& fault :
         {Fault{{9, 20, 3, 100}, {1, 2, 3, 0}}, Fault{{9, 20, 30, most}, {2, 3, most, 0}},
          Fault{{least, 20, 30, 100}, {2, 0, least, 0}}}) {
      inputs["offsets"] = words(fault.offsets);
      expect_status(problem, inputs, fault.status);
    }
    if (!unpad) continue;
    inputs["offsets"] = words({9, 20, 30, 40});
    for (const std::int32_t start : {-1, least, most, 250}) {  // of 256 rows
      inputs["starts"] = words({0, 32, start, 96});
      expect_status(problem, inputs, {4, 2, start, 0});
    }
  }
}

}  // namespace
}  // namespace mxjit::device
