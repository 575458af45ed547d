// What comes before a quantization is right to the bit: each value is the nearest bf16 number.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
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

// Of small, ordinary and large numbers, of zeros, of rows with a NaN or an infinity and of any patterns.
void expect_norms(const Problem& problem, Random& random) {
  const DType dtype = std::get<Quantize>(problem.op).input.dtype;
  for (const double deviation : {1e-30, 1.0, 1e30}) {
    TensorMap inputs = make_inputs(problem, random);
    inputs.at("x") = ordinary(dtype, inputs.at("x").shape, deviation, random);
    if (deviation == 1.0) inputs.at("weight") = ordinary(dtype, inputs.at("weight").shape, 1.0, random);
    expect_reference(problem, inputs);
  }
  TensorMap faulty = make_inputs(problem, random);
  HostTensor& x = faulty.at("x");
  x = ordinary(dtype, x.shape, 1.0, random);
  const auto length = static_cast<std::size_t>(x.shape.back());
  for (std::size_t row = 0; row < x.bytes.size() / (length * size_of(dtype)); row += 3) {
    // All ones in the exponent, and in the mantissa or not.
    const std::size_t at = (row * length + random() % length) * size_of(dtype);
    const std::uint32_t infinity = dtype == DType::fp32 ? 0x7F800000 : dtype == DType::bf16 ? 0x7F80 : 0x7C00;
    const std::uint32_t bits = infinity | (row % 2 == 0 ? 0 : 0x55);
    std::memcpy(&x.bytes[at], &bits, size_of(dtype));
  }
  expect_reference(problem, faulty);
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
      // Experts are rows as any others, and many.
      quantize.input.shape = small() ? problem::Shape{1, 9, n} : problem::Shape{517, n};
      if (eps == 0.0) quantize.input.shape = {9, n};
      quantize.emit_high = n % 3 == 0;
      quantize.pre = RmsNorm{eps};
      problems.push_back(whole(quantize));
    }
  prewarm(problems);
  for (const Problem& problem : problems) expect_norms(problem, random);
}

// Rows with scales of blocks, which the same kernel holds: every recipe and row length in turn, rows that are
// no multiple of what padded scales are, experts, odd pitches and bases.
TEST_P(FusionOfInput, RmsNormOfRowsWithBlocksIsRightToTheBit) {
  std::vector<problem::Recipe> recipes;
  for (const DType format : {DType::e4m3, DType::e5m2}) {
    problem::Recipe recipe;
    recipe.format = format;
    for (const Rounding rounding : {Rounding::rceil, Rounding::floor, Rounding::ceil, Rounding::even})
      for (const ScaleLayout layout : {ScaleLayout::plain, ScaleLayout::blocked}) {
        recipe.rounding = rounding;
        recipe.scale_layout = layout;
        recipes.push_back(recipe);
      }
    recipe.scaling = Scaling::fp32;
    recipe.block = {.rows = 1, .cols = 128};
    for (const Rounding rounding : {Rounding::none, Rounding::pow2})
      for (const ScaleLayout layout : {ScaleLayout::plain, ScaleLayout::mn_major}) {
        recipe.rounding = rounding;
        recipe.scale_layout = layout;
        recipes.push_back(recipe);
      }
  }
  // Those that a warp holds with four rows and with two, that several warps hold with two and with one, and
  // that none holds.
  const std::vector<std::int64_t> lengths = {1,    40,   100,  260,  520,  777,  1160,
                                             2048, 2600, 5120, 6200, 9001, 33000};
  std::vector<Problem> problems;
  auto turn = static_cast<std::size_t>(GetParam());
  // Of long rows a third of the recipes each, the next ones at the next length.
  for (const std::int64_t n : lengths)
    for (std::size_t i = 0; i < (small() ? 2 : n > 1160 ? recipes.size() / 3 : recipes.size()); ++i, ++turn) {
      if (small() && n > 2048 && turn % 2 != 0) continue;
      Quantize quantize;
      quantize.input.dtype = GetParam();
      const std::int64_t rows = small() || n > 10000 ? 13 : turn % 2 == 0 ? 389 : 517;
      quantize.input.shape = turn % 3 == 0 ? problem::Shape{rows, n} : problem::Shape{3, rows, n};
      quantize.recipe = recipes[turn % recipes.size()];
      quantize.emit_high = turn % 4 == 0;
      quantize.pre = RmsNorm{turn % 5 == 0 ? 0.0 : 1e-6};
      problems.push_back(whole(quantize));
    }
  prewarm(problems);
  Random random(41);
  for (std::size_t i = 0; i < problems.size(); ++i) {
    const Problem& problem = problems[i];
    SCOPED_TRACE(problem::print(problem));
    const bool short_row = std::get<Quantize>(problem.op).input.shape.back().max <= 1160;
    if (!small() || (short_row && i % 2 == 0)) {
      expect_norms(problem, random);
    } else {
      expect_reference(problem, make_inputs(problem, random));
    }
    const TensorMap inputs = make_inputs(problem, random);
    expect_reference(problem, inputs, {.extra_pitch = 3, .shift = 1, .dirt = 0x5A});
    expect_reference(problem, inputs, {.extra_pitch = 16, .shift = 0, .dirt = 0xFF});
  }
}

void set_element(HostTensor& tensor, std::size_t i, float value) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  const auto half = static_cast<std::uint16_t>(bits >> 16);
  if (tensor.dtype == DType::fp32) std::memcpy(&tensor.bytes[4 * i], &bits, 4);
  if (tensor.dtype == DType::bf16) std::memcpy(&tensor.bytes[2 * i], &half, 2);
}

// Weights and roots that fp32 does not reach, or only with fewer digits; zeros of both, too.
TEST_F(FusionValues, RmsNormOfAnyMagnitudes) {
  Random random(42);
  const std::vector<double> exponents = {-126, -100, -61, -60, 0, 59, 60, 61, 100, 126};
  for (const DType dtype : {DType::bf16, DType::fp32})
    for (const bool both_axes : {false, true})
      // 1e94: the inverse is 2^-156, and a large x times a large weight brings it back.
      for (const double eps : {0.0, 1e-6, 1e94, 1e300}) {
        Quantize quantize;
        quantize.input.dtype = dtype;
        quantize.input.shape = eps == 0.0 ? problem::Shape{12, 264} : problem::Shape{2, 6, 264};
        quantize.axes.col = both_axes;
        quantize.emit_high = true;
        quantize.pre = RmsNorm{eps};
        const Problem problem = whole(quantize);
        TensorMap inputs = make_inputs(problem, random);
        HostTensor& x = inputs.at("x");
        HostTensor& weight = inputs.at("weight");
        x = ordinary(dtype, x.shape, 1.0, random);
        for (std::size_t i = 0; i < 12; ++i)
          for (std::size_t j = 0; j < 264; ++j) {
            const double exponent = i < exponents.size() ? exponents[i] : i == 10 ? 127 : -140;
            const auto mantissa = static_cast<float>(1.0 + static_cast<double>(random() % 128) / 128);
            set_element(x, i * 264 + j, std::ldexp(mantissa, static_cast<int>(exponent)));
          }
        for (std::size_t j = 0; j < 264; ++j) {
          // Of every unit of eight most are moderate, so that the others must be found among them.
          const auto mantissa = static_cast<float>(1.0 + static_cast<double>(random() % 128) / 128);
          const int extreme = static_cast<int>(exponents[j / 8 % exponents.size()]);
          set_element(weight, j, j % 16 == 3 ? 0.0F : std::ldexp(mantissa, j % 8 == 5 ? extreme : 0));
        }
        expect_reference(problem, inputs);
      }
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
