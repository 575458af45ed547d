// Quantizations with an operation before them, and those that write the value before quantization, too.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <optional>
#include <vector>

#include "device/guarded.hpp"
#include "device/machine.hpp"
#include "device/problems.hpp"
#include "mxjit/error.hpp"

namespace mxjit::device {
namespace {

using problem::InputLayout;
using problem::Pre;
using problem::Problem;
using problem::Quantize;
using problem::RmsNorm;
using problem::Swiglu;

class FusionOnDevice : public DeviceTest {};

constexpr std::array dtypes = {DType::bf16, DType::fp16, DType::fp32};
constexpr std::array axes_choices = {Axes{true, true}, Axes{true, false}, Axes{false, true}};

Problem of(Quantize quantize) { return problem::with_defaults({.name = {}, .op = std::move(quantize)}); }

// Blocks that a group's end would cut are not.
bool is_valid(const Problem& problem) {
  try {
    problem::validate(problem);
    return true;
  } catch (const Error&) {
    return false;
  }
}

// What happens before, in every form.
std::vector<Pre> all_pre() {
  return {Swiglu{}, Swiglu{.interleave = true, .alpha = 1.0, .limit = {}},
          Swiglu{.interleave = false, .alpha = 1.702, .limit = 7.0},
          Swiglu{.interleave = true, .alpha = 1.702, .limit = 7.0}, RmsNorm{}};
}

// The recipes that differ in how bytes move.
std::vector<problem::Recipe> recipes() {
  std::vector<problem::Recipe> all;
  for (const Block& block : {Block{.rows = 1, .cols = 32}, Block{.rows = 1, .cols = 128},
                             Block{.rows = 32, .cols = 32}, Block{.rows = 128, .cols = 128}})
    for (const ScaleLayout layout : {ScaleLayout::plain, ScaleLayout::blocked}) {
      problem::Recipe recipe;
      recipe.block = block;
      recipe.scale_layout = layout;
      all.push_back(recipe);
    }
  problem::Recipe floats;
  floats.scaling = Scaling::fp32;
  floats.rounding = Rounding::none;
  for (const Block& block : {Block{.rows = 1, .cols = 128}, Block{.rows = 128, .cols = 128}}) {
    floats.block = block;
    all.push_back(floats);
  }
  floats.scale_layout = ScaleLayout::mn_major;
  all.push_back(floats);
  floats.scale_layout = ScaleLayout::plain;
  for (const Block::Kind kind : {Block::Kind::row, Block::Kind::tensor}) {
    floats.block = {.kind = kind, .rows = 1, .cols = 1};
    all.push_back(floats);
  }
  return all;
}

// Of every combination of `pre`, input, layout and y a recipe, axes and a shape in turn.
std::vector<Problem> fusions(const std::vector<Pre>& pres) {
  const auto all_recipes = recipes();
  const std::vector<problem::Shape> shapes = {{129, 322}, {2, 65, 160}, {200, 256}, {1, 2},
                                              {33, 130},  {3, 40, 34},  {384, 512}};
  std::vector<Problem> all;
  std::size_t turn = 0;
  for (const Pre& pre : pres)
    for (const DType dtype : dtypes)
      for (const InputLayout layout : {InputLayout::row, InputLayout::col})
        for (const bool high : {false, true})
          for (const Axes& axes : axes_choices) {
            Quantize quantize;
            quantize.input.dtype = dtype;
            quantize.input.shape = shapes[turn % shapes.size()];
            quantize.input_layout = layout;
            quantize.recipe = all_recipes[turn % all_recipes.size()];
            quantize.axes = axes;
            quantize.pre = pre;
            quantize.emit_high = high;
            all.push_back(of(quantize));
            ++turn;
          }
  return supported(all);
}

// Numbers as activations have them: near nothing special, which is where most values lie near a middle.
HostTensor ordinary(DType dtype, const std::vector<std::int64_t>& shape, double deviation, Random& random) {
  HostTensor wide{.dtype = DType::fp32, .shape = shape, .bytes = {}};
  std::normal_distribution<float> normal(0.0F, static_cast<float>(deviation));
  HostTensor tensor{.dtype = dtype, .shape = shape, .bytes = {}};
  const auto count = static_cast<std::size_t>(tensor.elements());
  tensor.bytes.resize(count * size_of(dtype));
  for (std::size_t i = 0; i < count; ++i) {
    const float value = normal(random);
    std::uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    if (dtype == DType::fp32) {
      std::memcpy(&tensor.bytes[4 * i], &bits, 4);
    } else if (dtype == DType::bf16) {
      const auto high = static_cast<std::uint16_t>(bits >> 16);
      std::memcpy(&tensor.bytes[2 * i], &high, 2);
    } else {
      // An fp16 number with the same sign and mantissa, its exponent cut to those that fp16 has.
      const int exponent = std::clamp(static_cast<int>(bits >> 23 & 0xFF) - 127 + 15, 1, 30);
      const auto half = static_cast<std::uint16_t>(
          (bits >> 31) << 15 | static_cast<unsigned>(exponent) << 10 | (bits >> 13 & 0x3FF));
      std::memcpy(&tensor.bytes[2 * i], &half, 2);
    }
  }
  return tensor;
}

TEST_F(FusionOnDevice, EveryForm) {
  std::vector<Problem> problems = fusions(all_pre());
  if (small()) {
    std::vector<Problem> some;
    for (std::size_t i = 0; i < problems.size(); i += 7) some.push_back(problems[i]);
    problems = some;
  }
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

// Every value is the nearest bf16 number, wherever in the range of gates, and whatever alpha and limit are.
TEST_F(FusionOnDevice, SwigluIsRightToTheBit) {
  Random random(32);
  Quantize quantize;
  quantize.input.shape = small() ? problem::Shape{256, 512} : problem::Shape{1024, 1024};
  quantize.axes = {.row = true, .col = true};
  quantize.emit_high = true;
  std::vector<Swiglu> forms;
  for (const double alpha : {1.0, 1.702, -1.0, 0.0, 1e-3, 40.0, 1e300, -1e-300})
    forms.push_back({.interleave = false, .alpha = alpha, .limit = {}});
  for (const double limit : {7.0, 6.9, 1.0, 1e-300, 1e300})
    forms.push_back({.interleave = false, .alpha = 1.702, .limit = limit});
  forms.push_back({.interleave = false, .alpha = -1.3, .limit = 0.7});
  for (const DType dtype : dtypes)
    for (const Swiglu& swiglu : forms) {
      quantize.input.dtype = dtype;
      quantize.pre = swiglu;
      const Problem problem = of(quantize);
      for (const double deviation : {0.5, 3.0, 30.0}) {
        TensorMap inputs = make_inputs(problem, random);
        inputs.at("x") = ordinary(dtype, inputs.at("x").shape, deviation, random);
        expect_reference(problem, inputs);
      }
      expect_reference(problem, make_inputs(problem, random));
    }
}

// An alpha of which 16 bits leave much to the rest, gates for which that counts most, and ups that bring the
// values next to a middle between two bf16 numbers.
TEST_F(FusionOnDevice, SwigluOfAnAlphaFarFromSixteenBits) {
  constexpr std::array ups = {0x1.57f61p+0F, 0x1.5ad876p+0F, 0x1.5dbadcp+0F,
                              0x1.5f2c1p+0F, 0x1.609d42p+0F, 0x1.620e76p+0F};
  constexpr float gate = -0x1.5be0a6p+4F;
  Quantize quantize;
  quantize.input.dtype = DType::fp32;
  quantize.input.shape = {1, 2 * 8 * static_cast<std::int64_t>(ups.size())};
  quantize.pre = Swiglu{.interleave = true, .alpha = 0x1.62e58ep+1, .limit = {}};
  quantize.emit_high = true;
  const Problem problem = of(quantize);
  Random random(40);
  TensorMap inputs = make_inputs(problem, random);
  for (std::size_t i = 0; i < 8 * ups.size(); ++i) {
    std::memcpy(&inputs.at("x").bytes[8 * i], &gate, sizeof gate);
    std::memcpy(&inputs.at("x").bytes[8 * i + 4], &ups[i % ups.size()], sizeof gate);
  }
  expect_reference(problem, inputs);
}

// Rows of gates whose pitch is a multiple of 16 bytes, where that of the rows of ups between them is not.
TEST_F(FusionOnDevice, AlternatingRowsAtOddPitches) {
  Random random(39);
  for (const DType dtype : dtypes)
    for (const std::int64_t m : {140, 250, 262}) {
      Quantize quantize;
      quantize.input.dtype = dtype;
      quantize.input.shape = {m, 130};
      quantize.input_layout = InputLayout::col;
      quantize.axes = {.row = true, .col = true};
      quantize.pre = Swiglu{.interleave = true, .alpha = 1.0, .limit = {}};
      const Problem problem = of(quantize);
      expect_reference(problem, make_inputs(problem, random));
    }
}

// One float scale a row, which a kernel of its own holds on chip.
Quantize float_rows() {
  Quantize quantize;
  quantize.recipe.scaling = Scaling::fp32;
  quantize.recipe.rounding = Rounding::none;
  quantize.recipe.block = {.kind = Block::Kind::row, .rows = 1, .cols = 1};
  return quantize;
}

// Of small, ordinary and large numbers, of zeros, of rows with a NaN or an infinity and of any patterns.
void expect_norms(const Quantize& quantize, Random& random) {
  const Problem problem = of(quantize);
  const DType dtype = quantize.input.dtype;
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

TEST_F(FusionOnDevice, RmsNormOfRowsIsRightToTheBit) {
  Random random(38);
  Quantize quantize = float_rows();
  for (const DType dtype : dtypes)
    for (const std::int64_t n : {8, 100, 260, 520, 777, 1536, 2048, 5120, 9000})
      for (const double eps : {0.0, 1e-6, 1e300}) {
        if (small() && n > 800 && eps != 1e-6) continue;
        quantize.input.dtype = dtype;
        // Experts are rows as any others, and many.
        quantize.input.shape = small() ? problem::Shape{1, 9, n} : problem::Shape{517, n};
        if (eps == 0.0) quantize.input.shape = {9, n};
        quantize.emit_high = n % 3 == 0;
        quantize.pre = RmsNorm{eps};
        expect_norms(quantize, random);
      }
}

// Rows with scales of blocks, which the same kernel holds: every recipe and row length in turn, rows that are
// no multiple of what padded scales are, experts, odd pitches and bases.
TEST_F(FusionOnDevice, RmsNormOfRowsWithBlocksIsRightToTheBit) {
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
  Random random(41);
  std::size_t turn = 0;
  for (const DType dtype : dtypes)
    for (const std::int64_t n : lengths)
      for (std::size_t i = 0; i < (small() ? 2 : recipes.size()); ++i, ++turn) {
        if (small() && n > 2048 && turn % 2 != 0) continue;
        Quantize quantize;
        quantize.input.dtype = dtype;
        const std::int64_t rows = small() || n > 10000 ? 13 : turn % 2 == 0 ? 389 : 517;
        quantize.input.shape = turn % 3 == 0 ? problem::Shape{rows, n} : problem::Shape{3, rows, n};
        quantize.recipe = recipes[turn % recipes.size()];
        quantize.emit_high = turn % 4 == 0;
        quantize.pre = RmsNorm{turn % 5 == 0 ? 0.0 : 1e-6};
        SCOPED_TRACE(problem::print(of(quantize)));
        if (!small() || n <= 1160) {
          expect_norms(quantize, random);
        } else {
          expect_reference(of(quantize), make_inputs(of(quantize), random));
        }
        TensorMap inputs = make_inputs(of(quantize), random);
        expect_reference(of(quantize), inputs, {.extra_pitch = 3, .shift = 1, .dirt = 0x5A});
        expect_reference(of(quantize), inputs, {.extra_pitch = 16, .shift = 0, .dirt = 0xFF});
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
TEST_F(FusionOnDevice, RmsNormOfAnyMagnitudes) {
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
        const Problem problem = of(quantize);
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

TEST_F(FusionOnDevice, RmsNormIsRightToTheBit) {
  Random random(36);
  Quantize quantize;
  quantize.input.shape = small() ? problem::Shape{130, 520} : problem::Shape{1024, 2048};
  quantize.axes = {.row = true, .col = true};
  quantize.emit_high = true;
  for (const DType dtype : dtypes)
    for (const InputLayout layout : {InputLayout::row, InputLayout::col})
      for (const double eps : {0.0, 1e-6, 1.0, 1e300}) {
        quantize.input.dtype = dtype;
        quantize.input_layout = layout;
        quantize.pre = RmsNorm{eps};
        expect_norms(quantize, random);
      }
}

// Rows so long that the last pass begins before the first one is over.
TEST_F(FusionOnDevice, RmsNormOfLongRows) {
  Random random(37);
  Quantize quantize;
  for (const std::int64_t n : {std::int64_t{24576}, std::int64_t{24577}, std::int64_t{49157}}) {
    Quantize rows = float_rows();
    rows.input.shape = {small() ? 2 : 300, n};
    rows.pre = RmsNorm{};
    const Problem problem = of(rows);
    TensorMap inputs = make_inputs(problem, random);
    inputs.at("x") = ordinary(DType::bf16, inputs.at("x").shape, 1.0, random);
    expect_reference(problem, inputs);
  }
  quantize.input.shape = small() ? problem::Shape{257, 49152} : problem::Shape{2000, 49153};
  quantize.pre = RmsNorm{};
  for (const bool col : {false, true}) {
    if (col && small()) continue;
    quantize.axes.col = col;
    const Problem problem = of(quantize);
    TensorMap inputs = make_inputs(problem, random);
    inputs.at("x") = ordinary(DType::bf16, inputs.at("x").shape, 1.0, random);
    expect_reference(problem, inputs);
  }
}

// Rows that a warp, a thread block and registers hold, and longer ones.
TEST_F(FusionOnDevice, EveryRowLength) {
  std::vector<Problem> problems;
  for (const Pre& pre : all_pre())
    for (const std::int64_t n : {1, 255, 2049, 8192, 16391, 32769, 40003}) {
      Quantize quantize;
      quantize.input.dtype = dtypes[problems.size() % dtypes.size()];
      quantize.input.shape = {5, 2 * n};
      quantize.recipe.scaling = Scaling::fp32;
      quantize.recipe.rounding = Rounding::none;
      quantize.recipe.block = {.kind = Block::Kind::row, .rows = 1, .cols = 1};
      quantize.pre = pre;
      quantize.emit_high = n % 2 == 1;
      problems.push_back(of(quantize));
    }
  problems = supported(problems);
  prewarm(problems);
  Random random(35);
  for (std::size_t i = 0; i < problems.size(); i += small() ? 3 : 1) {
    expect_reference(problems[i], make_inputs(problems[i], random));
    expect_reference(problems[i], make_inputs(problems[i], random),
                     {.extra_pitch = 3, .shift = 1, .dirt = 0x11});
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

// In memory they are groups of columns.
TEST_F(FusionOnDevice, GroupsOfTransposedInputs) {
  Random random(38);
  for (const int alignment : {128, 32, 1})
    for (const std::int64_t count : {1, 5, 40})
      for (const Axes& axes : axes_choices)
        for (const problem::Recipe& recipe : recipes()) {
          Quantize quantize;
          quantize.input.dtype = dtypes[random() % dtypes.size()];
          quantize.input.shape = {771, 200};
          quantize.input_layout = InputLayout::col;
          quantize.recipe = recipe;
          quantize.axes = axes;
          quantize.groups = problem::MGroups{.count = count, .alignment = alignment};
          quantize.emit_high = random() % 4 == 0;
          if (random() % 4 == 0) quantize.pre = all_pre()[random() % all_pre().size()];
          const bool inside = recipe.block.kind == Block::Kind::row && axes.col;  // scales inside each group
          if (small() && !inside && random() % 7 != 0) continue;
          const Problem problem = of(quantize);
          if (!is_valid(problem)) continue;
          expect_reference(problem, make_inputs(problem, random));
          expect_reference(problem, make_inputs(problem, random),
                           {.extra_pitch = 3, .shift = 1, .dirt = 0x11});
        }
}

// Rows of groups are rows as any others to what happens before.
TEST_F(FusionOnDevice, Groups) {
  Random random(34);
  for (const Pre& pre : all_pre())
    for (const int alignment : {128, 32, 1})
      for (const problem::Recipe& recipe : recipes()) {
        Quantize quantize;
        quantize.input.shape = {515, 320};
        quantize.recipe = recipe;
        quantize.axes = axes_choices[random() % 3];
        quantize.groups = problem::MGroups{.count = 5, .alignment = alignment};
        quantize.pre = pre;
        quantize.emit_high = random() % 2 == 0;
        const Problem problem = of(quantize);
        if (!is_valid(problem)) continue;
        if (small() && random() % 6 != 0) continue;
        if (is_supported(problem)) expect_reference(problem, make_inputs(problem, random));
      }
}

}  // namespace
}  // namespace mxjit::device
