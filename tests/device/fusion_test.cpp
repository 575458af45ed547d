// Quantizations with an operation before them, and those that write the value before quantization, too: every
// form, place, row length and grouping.
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "device/fusion_problems.hpp"
#include "device/guarded.hpp"
#include "device/machine.hpp"
#include "device/problems.hpp"

namespace mxjit::device {
namespace {

using problem::InputLayout;
using problem::Pre;
using problem::Problem;
using problem::Quantize;
using problem::Swiglu;

class FusionOnDevice : public DeviceTest {};

// A part of the tests each, to run side by side: of one form of what happens before; of one choice of axes.
class FusionOfPre : public DeviceTest, public testing::WithParamInterface<std::size_t> {
 protected:
  static Pre pre() { return all_pre()[GetParam()]; }
};
class FusionOfAxes : public DeviceTest, public testing::WithParamInterface<std::size_t> {
 protected:
  static Axes axes() { return axes_choices[GetParam()]; }
};

INSTANTIATE_TEST_SUITE_P(Every, FusionOfPre, testing::Range<std::size_t>(0, all_pre().size()),
                         [](const auto& of) -> std::string {
                           const Pre pre = all_pre()[of.param];
                           const auto* swiglu = std::get_if<Swiglu>(&pre);
                           if (swiglu == nullptr) return "rmsnorm";
                           return std::string("swiglu") + (swiglu->interleave ? "_interleaved" : "") +
                                  (swiglu->limit ? "_limited" : "");
                         });
INSTANTIATE_TEST_SUITE_P(Every, FusionOfAxes, testing::Range<std::size_t>(0, axes_choices.size()),
                         [](const auto& of) -> std::string {
                           const Axes axes = axes_choices[of.param];
                           return axes.row && axes.col ? "both" : axes.row ? "row" : "col";
                         });

TEST_P(FusionOfPre, EveryForm) {
  // Chosen before they are parted, so that recipes and shapes take turns over all forms.
  std::vector<Problem> problems = thinned(fusions(all_pre()), 7);
  std::erase_if(problems, [](const Problem& problem) { return std::get<Quantize>(problem.op).pre != pre(); });
  ASSERT_FALSE(problems.empty());
  prewarm(problems);
  Random random(31);
  for (const Problem& problem : problems) {
    expect_reference(problem, make_inputs(problem, random));
    expect_reference(problem, make_inputs(problem, random), {.extra_pitch = 5, .shift = 3, .dirt = 0x5A});
    TensorMap inputs = make_inputs(problem, random);
    inputs.at("x") = ordinary(inputs.at("x").dtype, inputs.at("x").shape, 3.0, random);
    expect_reference(problem, inputs, {.extra_pitch = 16, .shift = 0, .dirt = 0xFF});
  }
}

// y alone asks for nothing else.
TEST_F(FusionOnDevice, ValuesOfInputsAsTheyAre) {
  std::vector<Problem> problems = fusions({std::monostate{}});
  prewarm(problems);
  Random random(33);
  for (const Problem& problem : problems) {
    if (!std::get<Quantize>(problem.op).emit_high) continue;
    expect_reference(problem, make_inputs(problem, random));
    expect_reference(problem, make_inputs(problem, random), {.extra_pitch = 3, .shift = 1, .dirt = 0x11});
  }
}

// Rows that a warp, a thread block and registers hold, and longer ones.
TEST_F(FusionOnDevice, EveryRowLength) {
  std::vector<Problem> problems;
  for (const Pre& pre : all_pre())
    for (const std::int64_t n : {1, 255, 2049, 8192, 16391, 32769, 40003}) {
      Quantize quantize = float_rows();
      quantize.input.dtype = input_types[problems.size() % input_types.size()];
      quantize.input.shape = {5, 2 * n};
      quantize.pre = pre;
      quantize.emit_high = n % 2 == 1;
      problems.push_back(whole(quantize));
    }
  problems = supported(problems);
  prewarm(problems);
  Random random(35);
  for (std::size_t i = 0; i < problems.size(); i += small() ? 5 : 1) {
    expect_reference(problems[i], make_inputs(problems[i], random));
    expect_reference(problems[i], make_inputs(problems[i], random),
                     {.extra_pitch = 3, .shift = 1, .dirt = 0x11});
  }
}

// Rows of gates whose pitch is a multiple of 16 bytes, where that of the rows of ups between them is not.
TEST_F(FusionOnDevice, AlternatingRowsAtOddPitches) {
  Random random(39);
  for (const DType dtype : input_types)
    for (const std::int64_t m : {140, 250, 262}) {
      Quantize quantize;
      quantize.input.dtype = dtype;
      quantize.input.shape = {m, 130};
      quantize.input_layout = InputLayout::col;
      quantize.axes = {.row = true, .col = true};
      quantize.pre = Swiglu{.interleave = true, .alpha = 1.0, .limit = {}};
      const Problem problem = whole(quantize);
      expect_reference(problem, make_inputs(problem, random));
    }
}

// Rows of groups are rows as any others to what happens before.
TEST_P(FusionOfPre, Groups) {
  Random random(34 + GetParam());
  std::vector<Problem> problems;
  for (const int alignment : {128, 32, 1})
    for (const problem::Recipe& recipe : fusion_recipes()) {
      Quantize quantize;
      quantize.input.shape = {515, 320};
      quantize.recipe = recipe;
      quantize.groups = problem::MGroups{.count = 5, .alignment = alignment};
      quantize.pre = pre();
      quantize.emit_high = random() % 2 == 0;
      // The first axes, from any on, across which no group's end cuts a block.
      for (std::size_t axes = random() % 3, end = axes + 3; axes < end; ++axes) {
        quantize.axes = axes_choices[axes % 3];
        const Problem problem = whole(quantize);
        if (!is_valid(problem) || !is_supported(problem)) continue;
        problems.push_back(problem);
        break;
      }
    }
  problems = thinned(problems, 6);
  prewarm(problems);
  for (const Problem& problem : problems) expect_reference(problem, make_inputs(problem, random));
}

// In memory they are groups of columns.
TEST_P(FusionOfAxes, GroupsOfTransposedInputs) {
  Random random(38 + GetParam());
  std::vector<Problem> problems;
  int others = 0;
  for (const int alignment : {128, 32, 1})
    for (const std::int64_t count : {1, 5, 40})
      for (const problem::Recipe& recipe : fusion_recipes()) {
        Quantize quantize;
        quantize.input.dtype = input_types[random() % input_types.size()];
        quantize.input.shape = {771, 200};
        quantize.input_layout = InputLayout::col;
        quantize.recipe = recipe;
        quantize.axes = axes();
        quantize.groups = problem::MGroups{.count = count, .alignment = alignment};
        quantize.emit_high = random() % 4 == 0;
        if (random() % 4 == 0) quantize.pre = all_pre()[random() % all_pre().size()];
        const Problem problem = whole(quantize);
        if (!is_valid(problem)) continue;
        const bool inside = recipe.block.kind == Block::Kind::row && axes().col;  // scales inside each group
        if (!small() || inside || others++ % 9 == 0) problems.push_back(problem);
      }
  prewarm(problems);
  for (const Problem& problem : problems) {
    expect_reference(problem, make_inputs(problem, random));
    expect_reference(problem, make_inputs(problem, random), {.extra_pitch = 3, .shift = 1, .dirt = 0x11});
  }
}

}  // namespace
}  // namespace mxjit::device
