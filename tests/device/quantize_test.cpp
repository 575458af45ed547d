// Every supported problem of the tables against the reference, between guard zones, on dirty outputs.
#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "device/guarded.hpp"
#include "device/machine.hpp"
#include "device/problems.hpp"

namespace mxjit::device {
namespace {

using problem::Problem;

class QuantizeOnDevice : public DeviceTest {};

TEST_F(QuantizeOnDevice, TheTablesHoldWhatThisVersionPromises) {
  std::map<std::pair<bool, bool>, int> of_axes;
  for (const Problem& problem : supported(combinations())) {
    const auto& quantize = std::get<problem::Quantize>(problem.op);
    if (quantize.input.dtype == DType::bf16 && quantize.recipe.block == Block{.rows = 1, .cols = 32} &&
        quantize.recipe.scaling == Scaling::mx)
      ++of_axes[{quantize.axes.row, quantize.axes.col}];
  }
  // Two formats, four roundings, two layouts of scales, two of the input, 2D and 3D.
  EXPECT_EQ((of_axes[{true, false}]), 64);
  EXPECT_EQ((of_axes[{true, true}]), 64);
}

TEST_F(QuantizeOnDevice, EveryCombination) {
  const auto problems = thinned(supported(combinations()), 47);
  prewarm(problems);
  Random random(1);
  for (const Problem& problem : problems) expect_reference(problem, make_inputs(problem, random));
}

TEST_F(QuantizeOnDevice, EveryShape) {
  const auto problems = thinned(supported(shapes()), 59);
  prewarm(problems);
  Random random(2);
  for (const Problem& problem : problems) expect_reference(problem, make_inputs(problem, random));
}

TEST_F(QuantizeOnDevice, EveryPitchAndAlignment) {
  const auto problems = thinned(supported(shapes()), 173);
  prewarm(problems);
  Random random(3);
  int turn = 0;
  for (const Problem& problem : problems)
    for (const std::int64_t extra : {0, 1, 3, 8, 16, 40}) {
      // Every shift with every pitch, over three problems.
      static constexpr std::array shifts = {0, 1, 2, 4, 8, 3};
      const Placement placement{.extra_pitch = extra,
                                .shift = shifts[static_cast<std::size_t>(turn++) % shifts.size()],
                                .dirt = static_cast<std::uint8_t>(turn % 2 == 0 ? 0xA5 : 0x00)};
      if (extra == 0 && placement.shift == 0) continue;
      SCOPED_TRACE(testing::Message() << "extra pitch " << extra << ", shift " << placement.shift);
      expect_reference(problem, make_inputs(problem, random), placement);
    }
}

TEST_F(QuantizeOnDevice, EveryRowLength) {
  const auto problems = thinned(supported(row_lengths()), 7);
  prewarm(problems);
  Random random(4);
  for (const Problem& problem : problems) {
    expect_reference(problem, make_inputs(problem, random));
    expect_reference(problem, make_inputs(problem, random), {.extra_pitch = 3, .shift = 1, .dirt = 0x11});
  }
}

TEST_F(QuantizeOnDevice, EveryGrouping) {
  const auto problems = thinned(supported(groupings()), 5);
  prewarm(problems);
  Random random(5);
  for (const Problem& problem : problems)
    for (int i = 0; i < (small() ? 2 : 3); ++i) expect_reference(problem, make_inputs(problem, random));
}

// A plan serves numbers of groups up to a power of two; the workspace is that of each call.
TEST_F(QuantizeOnDevice, OtherNumbersOfGroups) {
  Random random(9);
  problem::Quantize quantize;
  quantize.input.shape = {200, 1000};
  quantize.recipe.scaling = Scaling::fp32;
  quantize.recipe.rounding = Rounding::none;
  quantize.recipe.block = {.kind = Block::Kind::row, .rows = 1, .cols = 1};
  quantize.axes = {.row = true, .col = true};
  for (const std::int64_t count : {64, 33, 63, 34}) {
    quantize.groups = problem::MGroups{.count = count, .alignment = 1};
    const Problem problem = whole(quantize);
    expect_reference(problem, make_inputs(problem, random));
  }
}

// Nothing is written, and the guard zones around nothing stay as they were.
TEST_F(QuantizeOnDevice, GroupsOfRowsWithoutElements) {
  Random random(10);
  for (const std::int32_t extent : {32, 128})
    for (const std::int32_t rows : {1, extent})
      for (const int alignment : {1, 32, 128}) {
        problem::Quantize quantize;
        quantize.input.shape = {300, 0};
        quantize.recipe.block = {.rows = rows, .cols = extent};
        quantize.recipe.scale_layout = ScaleLayout::blocked;
        // Tall blocks must not reach over a group's end.
        quantize.axes = {.row = true, .col = alignment % rows == 0 && alignment % extent == 0};
        if (alignment % rows != 0) continue;
        quantize.groups = problem::MGroups{.count = 5, .alignment = alignment};
        const Problem problem = whole(quantize);
        expect_reference(problem, make_inputs(problem, random));
      }
}

// High enough that two passes go strip by strip: strips of one tile, more of them than the passes are apart.
TEST_F(QuantizeOnDevice, StripsOfHighMatrices) {
  Random random(8);
  std::vector<problem::Shape> high = {{25000, 300}};
  if (!small()) high.insert(high.end(), {{25000, 700}, {50000, 300}});
  for (const problem::Shape& shape : high) {
    problem::Quantize quantize;
    quantize.input.shape = shape;
    quantize.recipe.scaling = Scaling::fp32;
    quantize.recipe.rounding = Rounding::none;
    quantize.recipe.block = {.kind = Block::Kind::row, .rows = 1, .cols = 1};
    quantize.axes = {.row = false, .col = true};
    for (const bool grouped : {true, false}) {
      if (!grouped && small()) continue;
      quantize.groups.reset();
      if (grouped) quantize.groups = problem::MGroups{.count = 7, .alignment = 1};
      const Problem problem = whole(quantize);
      expect_reference(problem, make_inputs(problem, random));
    }
  }
}

// Extents of 0 leave scales behind; a cap changes values only.
TEST_F(QuantizeOnDevice, ScalesWithoutElements) {
  Random random(6);
  for (Problem problem : supported(shapes())) {
    auto& quantize = std::get<problem::Quantize>(problem.op);
    if (quantize.input.shape != problem::Shape{1, 1}) continue;
    const std::vector<problem::Shape> empty_shapes = {{0, 37},    {37, 0},   {0, 0},
                                                      {0, 37, 5}, {3, 0, 5}, {3, 37, 0}};
    for (const problem::Shape& shape : empty_shapes) {
      quantize.input.shape = shape;
      quantize.input.ld.reset();
      quantize.input.align.reset();
      const Problem empty = problem::with_defaults(problem);
      expect_reference(empty, make_inputs(empty, random));
    }
  }
}

TEST_F(QuantizeOnDevice, CapsOfTheLargestMagnitude) {
  Random random(7);
  for (Problem problem : supported(combinations())) {
    auto& quantize = std::get<problem::Quantize>(problem.op);
    if (quantize.recipe.scaling != Scaling::fp32 || quantize.recipe.format != DType::e4m3 ||
        quantize.input.dtype != DType::bf16 || quantize.input.shape.size() != 2 ||
        quantize.input_layout != problem::InputLayout::row)
      continue;
    for (const double cap : {1200.0, 1.0, 1e-3, 1e-30, 1e-300}) {
      quantize.recipe.amax_cap = cap;
      expect_reference(problem, make_inputs(problem, random));
    }
  }
}

}  // namespace
}  // namespace mxjit::device
