// Every supported problem of the tables against the reference, between guard zones, on dirty outputs.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "device/guarded.hpp"
#include "device/machine.hpp"
#include "device/problems.hpp"

namespace mxjit::device {
namespace {

using problem::Problem;

class QuantizeOnDevice : public DeviceTest {};

// Every `stride`-th problem when sizes are to be small.
std::vector<Problem> thinned(std::vector<Problem> problems, std::size_t stride) {
  if (!small()) return problems;
  std::vector<Problem> kept;
  for (std::size_t i = 0; i < problems.size(); i += stride) kept.push_back(problems[i]);
  return kept;
}

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
  const auto problems = thinned(supported(combinations()), 29);
  prewarm(problems);
  Random random(1);
  for (const Problem& problem : problems) expect_reference(problem, make_inputs(problem, random));
}

TEST_F(QuantizeOnDevice, EveryShape) {
  const auto problems = thinned(supported(shapes()), 41);
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

TEST_F(QuantizeOnDevice, RandomProblems) {
  const char* asked = std::getenv("MXJIT_RANDOM");
  const int count = asked != nullptr ? std::atoi(asked) : small() ? 10 : 300;
  Random random(20240229);
  std::vector<Problem> problems;
  for (int i = 0; i < count; ++i) problems.push_back(random_problem(random));
  prewarm(problems);
  for (const Problem& problem : problems) {
    const Placement placement{.extra_pitch = random() % 3 == 0 ? static_cast<std::int64_t>(random() % 50) : 0,
                              .shift = random() % 3 == 0 ? static_cast<int>(random() % 17) : 0,
                              .dirt = static_cast<std::uint8_t>(random())};
    SCOPED_TRACE(testing::Message() << "extra pitch " << placement.extra_pitch << ", shift "
                                    << placement.shift);
    expect_reference(problem, make_inputs(problem, random), placement);
  }
}

}  // namespace
}  // namespace mxjit::device
