// One float scale for the tensor: a launch a pass where tiles are few, one launch that counts where they are
// many.
#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <cstring>
#include <vector>

#include "device/fusion_problems.hpp"
#include "device/guarded.hpp"
#include "device/machine.hpp"
#include "device/problems.hpp"
#include "reference/reference.hpp"

namespace mxjit::device {
namespace {

using problem::InputLayout;
using problem::Problem;
using problem::Quantize;
using problem::Shape;

class TensorScale : public DeviceTest {};

Quantize of_tensor(const Shape& shape, Axes axes, DType input = DType::bf16) {
  Quantize quantize = float_rows();
  quantize.recipe.block.kind = Block::Kind::tensor;
  quantize.input.dtype = input;
  quantize.input.shape = shape;
  quantize.axes = axes;
  return quantize;
}

// Ordinary values, and one at `at` that is larger than any of them: whichever tile has it, all must know.
TensorMap inputs_with_largest(const Problem& problem, std::size_t at, Random& random) {
  TensorMap inputs = make_inputs(problem, random);
  HostTensor& x = inputs.at("x");
  x = ordinary(x.dtype, x.shape, 1.0, random);
  const std::size_t element = size_of(x.dtype);
  if (x.bytes.size() < element * (at + 1)) return inputs;
  const std::uint32_t bits = x.dtype == DType::fp16 ? 0x5640 : std::bit_cast<std::uint32_t>(100.0F);
  const std::uint32_t stored = x.dtype == DType::bf16 ? bits >> 16 : bits;
  std::memcpy(x.bytes.data() + at * element, &stored, element);
  return inputs;
}

std::size_t elements_of(const Problem& problem) {
  std::size_t elements = 1;
  for (const problem::Extent& extent : std::get<Quantize>(problem.op).input.shape)
    elements *= static_cast<std::size_t>(extent.min);
  return elements;
}

// Slots of an earlier call's larger values or NaN must not be read.
constexpr Placement dirty{.extra_pitch = 0, .shift = 0, .dirt = 0x7E};
constexpr Placement nans{.extra_pitch = 5, .shift = 3, .dirt = 0xFF};

void expect_everywhere(const std::vector<Problem>& problems, Random random) {
  prewarm(problems);
  for (const Problem& problem : problems) {
    SCOPED_TRACE(problem::print(problem));
    const std::size_t elements = elements_of(problem), last = elements > 0 ? elements - 1 : 0;
    expect_reference(problem, inputs_with_largest(problem, 0, random), dirty);
    expect_reference(problem, inputs_with_largest(problem, last, random), nans);
    if (elements > 100000) continue;
    expect_reference(problem, inputs_with_largest(problem, elements / 2, random), dirty);
    expect_reference(problem, make_inputs(problem, random), nans);
  }
}

TEST_F(TensorScale, FewTiles) {
  std::vector<Problem> problems;
  for (const DType input : input_types)
    for (const Axes axes : axes_choices)
      for (const Shape& shape : {Shape{1, 1}, Shape{1, 7168}, Shape{31, 127}, Shape{32, 128}, Shape{33, 129},
                                 Shape{129, 300}, Shape{3, 130, 257}, Shape{40, 5, 9}})
        problems.push_back(whole(of_tensor(shape, axes, input)));
  expect_everywhere(thinned(problems, 2), Random(61));
}

// 1024 tiles, one more, and those of a tensor that is small and of larger ones.
TEST_F(TensorScale, AroundTheLimits) {
  std::vector<Problem> problems;
  for (const Axes axes : axes_choices) {
    for (const Shape& shape : {Shape{1, 131072}, Shape{1, 131073}, Shape{1024, 1, 5}, Shape{1025, 1, 5}})
      problems.push_back(whole(of_tensor(shape, axes)));
  }
  problems.push_back(whole(of_tensor({128, 8192}, {.row = true, .col = false})));
  problems.push_back(whole(of_tensor({129, 8192}, {.row = true, .col = false})));
  problems.push_back(whole(of_tensor({65, 8193}, {.row = true, .col = false})));
  if (!small()) problems.push_back(whole(of_tensor({4096, 4224}, {.row = true, .col = false})));
  expect_everywhere(problems, Random(62));
}

TEST_F(TensorScale, TransposedInputs) {
  std::vector<Problem> problems;
  for (const DType input : input_types)
    for (const Axes axes : axes_choices)
      for (const Shape& shape : {Shape{70, 200}, Shape{2, 300, 40}}) {
        Quantize quantize = of_tensor(shape, axes, input);
        quantize.input_layout = InputLayout::col;
        problems.push_back(whole(quantize));
      }
  expect_everywhere(thinned(problems, 2), Random(63));
}

TEST_F(TensorScale, SwigluAndTheValueBefore) {
  std::vector<Problem> problems;
  for (const bool high : {false, true})
    for (const bool computed : {false, true})
      for (const Axes axes : axes_choices)
        for (const InputLayout layout : {InputLayout::row, InputLayout::col})
          for (const Shape& shape : {Shape{130, 322}, Shape{2, 40, 258}}) {
            if (!high && !computed) continue;
            Quantize quantize = of_tensor(shape, axes);
            if (computed) quantize.pre = problem::Swiglu{};
            quantize.emit_high = high;
            quantize.input_layout = layout;
            problems.push_back(whole(quantize));
          }
  expect_everywhere(thinned(problems, 3), Random(64));
}

TEST_F(TensorScale, OfNoElements) {
  Random random(65);
  for (const Shape& shape :
       {Shape{0, 300}, Shape{300, 0}, Shape{0, 0}, Shape{0, 40, 5}, Shape{3, 0, 5}, Shape{3, 40, 0}})
    for (const Axes axes : axes_choices) {
      const Problem problem = whole(of_tensor(shape, axes));
      expect_reference(problem, make_inputs(problem, random), dirty);
    }
}

// One workspace for calls of larger and smaller values, one after the other: in order, early, and in a graph.
TEST_F(TensorScale, NothingStaysInAWorkspace) {
  const Machine& machine = Machine::get();
  Random random(66);
  const auto early = machine.cold_context();
  dispatch::ContextAccess::state(*early).start = driver::Start::early;
  for (const Problem& problem : {whole(of_tensor({130, 700}, {.row = true, .col = false})),
                                 whole(of_tensor({130, 700}, {.row = true, .col = true}))}) {
    const TensorMap large = inputs_with_largest(problem, 90000, random);
    TensorMap ordinary_ones = large, zeros = large;
    HostTensor& x = ordinary_ones.at("x");
    x = ordinary(x.dtype, x.shape, 1e-3, random);
    for (auto& byte : zeros.at("x").bytes) byte = {};
    GuardedProblem first(problem, large, dirty), second(problem, ordinary_ones), third(problem, zeros);
    const auto expect_all = [&] {
      machine.synchronize();
      expect_equal(first.read(), reference::run(problem, large));
      expect_equal(second.read(), reference::run(problem, ordinary_ones));
      expect_equal(third.read(), reference::run(problem, zeros));
      for (GuardedProblem* one : {&first, &second, &third}) one->dirty();
    };
    const auto launch = [&](Context& context) {
      for (const GuardedProblem* one : {&first, &second, &third, &first, &third, &second}) {
        dispatch::DeviceTensors tensors = one->tensors();
        tensors[dispatch::workspace_name] = first.tensors().at(dispatch::workspace_name);
        dispatch::launch_problem(context, problem, tensors, machine.stream());
      }
    };
    for (Context* context : {&machine.context(), early.get()})
      for (int repeat = 0; repeat < (small() ? 1 : 50); ++repeat) {
        launch(*context);
        expect_all();
        const driver::OwnedGraphExec graph = machine.captured([&] { launch(*context); });
        machine.run(graph);
        expect_all();
      }
  }
}

}  // namespace
}  // namespace mxjit::device
