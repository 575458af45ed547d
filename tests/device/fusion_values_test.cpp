// What comes before a quantization is right to the bit: each value is the nearest bf16 number.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "device/fusion_problems.hpp"
#include "device/guarded.hpp"
#include "device/machine.hpp"
#include "device/problems.hpp"

namespace mxjit::device {
namespace {

using problem::InputLayout;
using problem::Problem;
using problem::Quantize;
using problem::RmsNorm;
using problem::Swiglu;

class FusionValues : public DeviceTest {};

// Of one type of input each, to run side by side.
class FusionOfInput : public DeviceTest, public testing::WithParamInterface<DType> {};

INSTANTIATE_TEST_SUITE_P(Every, FusionOfInput, testing::ValuesIn(input_types),
                         [](const auto& of) { return std::string(to_string(of.param)); });

// Every value is the nearest bf16 number, wherever in the range of gates, and whatever alpha and limit are.
TEST_P(FusionOfInput, SwigluIsRightToTheBit) {
  Random random(32);
  Quantize quantize;
  quantize.input.dtype = GetParam();
  quantize.input.shape = small() ? problem::Shape{256, 512} : problem::Shape{1024, 1024};
  quantize.axes = {.row = true, .col = true};
  quantize.emit_high = true;
  std::vector<Swiglu> forms;
  for (const double alpha : {1.0, 1.702, -1.0, 0.0, 1e-3, 40.0, 1e300, -1e-300})
    forms.push_back({.interleave = false, .alpha = alpha, .limit = {}});
  for (const double limit : {7.0, 6.9, 1.0, 1e-300, 1e300})
    forms.push_back({.interleave = false, .alpha = 1.702, .limit = limit});
  forms.push_back({.interleave = false, .alpha = -1.3, .limit = 0.7});
  for (const Swiglu& swiglu : forms) {
    quantize.pre = swiglu;
    const Problem problem = whole(quantize);
    for (const double deviation : {0.5, 3.0, 30.0}) {
      TensorMap inputs = make_inputs(problem, random);
      inputs.at("x") = ordinary(GetParam(), inputs.at("x").shape, deviation, random);
      expect_reference(problem, inputs);
    }
    expect_reference(problem, make_inputs(problem, random));
  }
}

// An alpha of which 16 bits leave much to the rest, gates for which that counts most, and ups that bring the
// values next to a middle between two bf16 numbers.
TEST_F(FusionValues, SwigluOfAnAlphaFarFromSixteenBits) {
  constexpr std::array ups = {0x1.57f61p+0F, 0x1.5ad876p+0F, 0x1.5dbadcp+0F,
                              0x1.5f2c1p+0F, 0x1.609d42p+0F, 0x1.620e76p+0F};
  constexpr float gate = -0x1.5be0a6p+4F;
  Quantize quantize;
  quantize.input.dtype = DType::fp32;
  quantize.input.shape = {1, 2 * 8 * static_cast<std::int64_t>(ups.size())};
  quantize.pre = Swiglu{.interleave = true, .alpha = 0x1.62e58ep+1, .limit = {}};
  quantize.emit_high = true;
  const Problem problem = whole(quantize);
  Random random(40);
  TensorMap inputs = make_inputs(problem, random);
  for (std::size_t i = 0; i < 8 * ups.size(); ++i) {
    std::memcpy(&inputs.at("x").bytes[8 * i], &gate, sizeof gate);
    std::memcpy(&inputs.at("x").bytes[8 * i + 4], &ups[i % ups.size()], sizeof gate);
  }
  expect_reference(problem, inputs);
}

// Of small, ordinary and large numbers, of zeros and of any patterns.
void expect_norms(const Problem& problem, Random& random) {
  const DType dtype = std::get<Quantize>(problem.op).input.dtype;
  for (const double deviation : {1e-30, 1.0, 1e30}) {
    TensorMap inputs = make_inputs(problem, random);
    inputs.at("x") = ordinary(dtype, inputs.at("x").shape, deviation, random);
    if (deviation == 1.0) inputs.at("weight") = ordinary(dtype, inputs.at("weight").shape, 1.0, random);
    expect_reference(problem, inputs);
  }
  TensorMap zeros = make_inputs(problem, random);
  std::fill(zeros.at("x").bytes.begin(), zeros.at("x").bytes.end(), std::uint8_t{0});
  expect_reference(problem, zeros);
  expect_reference(problem, make_inputs(problem, random));
}

TEST_P(FusionOfInput, RmsNormOfRowsIsRightToTheBit) {
  Random random(38);
  Quantize quantize = float_rows();
  quantize.input.dtype = GetParam();
  std::vector<Problem> problems;
  for (const std::int64_t n : {8, 100, 260, 520, 777, 1536, 2048, 5120, 9000})
    for (const double eps : {0.0, 1e-6, 1e300}) {
      if (small() && n > 800 && eps != 1e-6) continue;
      quantize.input.shape = {small() ? 9 : 517, n};
      quantize.emit_high = n % 3 == 0;
      quantize.pre = RmsNorm{eps};
      problems.push_back(whole(quantize));
    }
  prewarm(problems);
  for (const Problem& problem : problems) expect_norms(problem, random);
}

TEST_P(FusionOfInput, RmsNormIsRightToTheBit) {
  Random random(36);
  Quantize quantize;
  quantize.input.dtype = GetParam();
  quantize.input.shape = small() ? problem::Shape{130, 520} : problem::Shape{1024, 2048};
  quantize.axes = {.row = true, .col = true};
  quantize.emit_high = true;
  for (const InputLayout layout : {InputLayout::row, InputLayout::col})
    for (const double eps : {0.0, 1e-6, 1.0, 1e300}) {
      quantize.input_layout = layout;
      quantize.pre = RmsNorm{eps};
      expect_norms(whole(quantize), random);
    }
}

// Rows so long that the last pass begins before the first one is over.
void expect_long_rows(Quantize quantize, const problem::Shape& shape) {
  Random random(37);
  quantize.input.shape = shape;
  quantize.pre = RmsNorm{};
  const Problem problem = whole(quantize);
  TensorMap inputs = make_inputs(problem, random);
  inputs.at("x") = ordinary(DType::bf16, inputs.at("x").shape, 1.0, random);
  expect_reference(problem, inputs);
}

TEST_F(FusionValues, RmsNormOfLongRowsWithOneScale) {
  for (const std::int64_t n : {24576, 24577, 49157}) expect_long_rows(float_rows(), {small() ? 2 : 300, n});
}

TEST_F(FusionValues, RmsNormOfLongRows) {
  expect_long_rows({}, small() ? problem::Shape{257, 49152} : problem::Shape{2000, 49153});
}

TEST_F(FusionValues, RmsNormOfLongRowsForBothAxes) {
  if (small()) GTEST_SKIP() << "too long for reduced sizes";
  Quantize quantize;
  quantize.axes.col = true;
  expect_long_rows(quantize, {2000, 49153});
}

}  // namespace
}  // namespace mxjit::device
