// GEMMs against a triple loop of the test's own, over every kind of scale; and each option by a hand-made
// case.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <functional>
#include <random>

#include "contract/builders.hpp"
#include "mxjit/error.hpp"

namespace mxjit::contract {
namespace {

using Grid = std::vector<std::vector<double>>;

// e4m3 codes of small integers, and their values.
const std::vector<std::pair<std::uint8_t, double>>& integers() {
  static const std::vector<std::pair<std::uint8_t, double>> table = {
      {0x00, 0}, {0x38, 1}, {0x40, 2}, {0x44, 3}, {0x48, 4}, {0xB8, -1}, {0xC0, -2}, {0xC4, -3}, {0x30, 0.5}};
  return table;
}

struct Codes {
  HostTensor tensor;
  Grid values;
};

Codes random_codes(std::mt19937& random, std::int64_t rows, std::int64_t cols, bool transposed = false) {
  Codes out;
  out.values.assign(static_cast<std::size_t>(rows), std::vector<double>(static_cast<std::size_t>(cols)));
  std::vector<std::uint8_t> codes(static_cast<std::size_t>(rows * cols));
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < cols; ++c) {
      const auto& [code, value] = integers()[random() % integers().size()];
      codes[static_cast<std::size_t>(transposed ? c * rows + r : r * cols + c)] = code;
      out.values[static_cast<std::size_t>(r)][static_cast<std::size_t>(c)] = value;
    }
  }
  out.tensor = tensor_of(DType::e4m3, transposed ? std::vector{cols, rows} : std::vector{rows, cols}, codes);
  return out;
}

// Scales are powers of two, so that every product and sum below is exact in fp32.
std::vector<float> random_scales(std::mt19937& random, std::size_t count) {
  std::vector<float> out;
  for (std::size_t i = 0; i < count; ++i) out.push_back(std::ldexp(1.0F, static_cast<int>(random() % 5) - 2));
  return out;
}

std::vector<std::uint8_t> random_scale_codes(std::mt19937& random, std::size_t count) {
  std::vector<std::uint8_t> out;
  for (std::size_t i = 0; i < count; ++i) out.push_back(static_cast<std::uint8_t>(125 + random() % 5));
  return out;
}

double code_value(std::uint8_t code) { return std::ldexp(1.0, code - 127); }

constexpr std::int64_t m = 37;
constexpr std::int64_t n = 45;
constexpr std::int64_t k = 300;

// One way to scale an operand of `rows` x 300: what the problem says, the tensor, the scale of element (r,
// c).
struct Scaled {
  std::string fields;
  HostTensor tensor;
  std::function<double(std::int64_t, std::int64_t)> at;
};

using MakeScaled = std::function<Scaled(std::mt19937&, std::int64_t rows)>;

Scaled tensor_scale(std::mt19937& random, std::int64_t) {
  const std::vector<float> s = random_scales(random, 1);
  return {R"({"kind":"fp32","block":"tensor"})", tensor_of(DType::fp32, {1}, s),
          [s](auto, auto) { return s[0]; }};
}
Scaled row_scale(std::mt19937& random, std::int64_t rows) {
  const std::vector<float> s = random_scales(random, static_cast<std::size_t>(rows));
  return {R"({"kind":"fp32","block":"row"})", tensor_of(DType::fp32, {rows}, s),
          [s](auto r, auto) { return s[static_cast<std::size_t>(r)]; }};
}
Scaled k_scale(std::mt19937& random, std::int64_t) {
  const std::vector<float> s = random_scales(random, k);
  return {R"({"kind":"fp32","block":"k"})", tensor_of(DType::fp32, {k}, s),
          [s](auto, auto c) { return s[static_cast<std::size_t>(c)]; }};
}
Scaled block_scale(std::mt19937& random, std::int64_t rows) {
  const std::vector<float> s = random_scales(random, static_cast<std::size_t>(rows * 3));
  return {R"({"kind":"fp32","block":128})", tensor_of(DType::fp32, {rows, 3}, s),
          [s](auto r, auto c) { return s[static_cast<std::size_t>(r * 3 + c / 128)]; }};
}
Scaled turned_block_scale(std::mt19937& random, std::int64_t rows) {
  const std::int64_t pitch = rows == m ? 40 : 48;  // rounded up to a multiple of 4
  const std::vector<float> s = random_scales(random, static_cast<std::size_t>(3 * pitch));
  return {R"({"kind":"fp32","block":128,"layout":"mn_major"})", tensor_of(DType::fp32, {3, pitch}, s),
          [s, pitch](auto r, auto c) { return s[static_cast<std::size_t>(c / 128 * pitch + r)]; }};
}
Scaled square_scale(std::mt19937& random, std::int64_t) {
  const std::vector<float> s = random_scales(random, 3);
  return {R"({"kind":"fp32","block":[128,128]})", tensor_of(DType::fp32, {1, 3}, s),
          [s](auto, auto c) { return s[static_cast<std::size_t>(c / 128)]; }};
}
Scaled mx_scale(std::mt19937& random, std::int64_t rows) {
  const std::vector<std::uint8_t> s = random_scale_codes(random, static_cast<std::size_t>(rows * 10));
  return {R"({"kind":"mx","block":32})", tensor_of(DType::e8m0, {rows, 10}, s),
          [s](auto r, auto c) { return code_value(s[static_cast<std::size_t>(r * 10 + c / 32)]); }};
}
Scaled mx_square_scale(std::mt19937& random, std::int64_t) {
  const std::vector<std::uint8_t> s = random_scale_codes(random, 20);
  return {R"({"kind":"mx","block":[32,32]})", tensor_of(DType::e8m0, {2, 10}, s),
          [s](auto r, auto c) { return code_value(s[static_cast<std::size_t>(r / 32 * 10 + c / 32)]); }};
}
Scaled mx_blocked_scale(std::mt19937& random, std::int64_t) {
  const std::vector<std::uint8_t> s = random_scale_codes(random, 128 * 12);
  return {R"({"kind":"mx","block":32,"layout":"blocked"})", tensor_of(DType::u8, {128 * 12}, s),
          [s](auto r, auto c) {
            const auto b = c / 32;
            return code_value(s[static_cast<std::size_t>(b / 4 * 512 + r % 32 * 16 + r / 32 * 4 + b % 4)]);
          }};
}
Scaled no_scale(std::mt19937&, std::int64_t) {
  return {"null", {}, [](auto, auto) { return 1.0; }};
}

struct Kind {
  std::string name;
  MakeScaled a;
  MakeScaled b;
};

class GemmScales : public testing::TestWithParam<Kind> {};

TEST_P(GemmScales, MatchATripleLoop) {
  std::mt19937 random(5);
  for (const bool transposed : {false, true}) {
    const Codes a = random_codes(random, m, k, transposed);
    const Codes b = random_codes(random, n, k, transposed);
    const Scaled sa = GetParam().a(random, m);
    const Scaled sb = GetParam().b(random, n);
    TensorMap inputs{{"a", a.tensor}, {"b", b.tensor}};
    if (sa.fields != "null") inputs["a_scale"] = sa.tensor;
    if (sb.fields != "null") inputs["b_scale"] = sb.tensor;
    const std::string major = transposed ? "mn" : "k";
    const TensorMap out = run(
        fmt::format(
            R"("op":"gemm","a":{{"dtype":"e4m3","shape":[{},{}],"major":"{}","scaling":{}}},"b":{{"dtype":"e4m3","shape":[{},{}],"major":"{}","scaling":{}}},"d":{{"dtype":"fp32"}})",
            m, k, major, sa.fields, n, k, major, sb.fields),
        inputs);
    const std::vector<float> d = elements_of<float>(out.at("d"));
    for (std::int64_t r = 0; r < m; ++r) {
      for (std::int64_t c = 0; c < n; ++c) {
        double sum = 0.0;
        for (std::int64_t i = 0; i < k; ++i) {
          const auto ui = static_cast<std::size_t>(i);
          sum += a.values[static_cast<std::size_t>(r)][ui] * sa.at(r, i) *
                 b.values[static_cast<std::size_t>(c)][ui] * sb.at(c, i);
        }
        ASSERT_EQ(d[static_cast<std::size_t>(r * n + c)], sum) << r << "," << c;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, GemmScales,
    testing::Values(Kind{"None", no_scale, no_scale}, Kind{"Tensor", tensor_scale, tensor_scale},
                    Kind{"Row", row_scale, row_scale}, Kind{"TensorByRow", tensor_scale, row_scale},
                    Kind{"RowByNone", row_scale, no_scale}, Kind{"RowByK", row_scale, k_scale},
                    Kind{"Block", block_scale, block_scale}, Kind{"BlockBySquare", block_scale, square_scale},
                    Kind{"TurnedBlockByRow", turned_block_scale, row_scale},
                    Kind{"TurnedBlocks", turned_block_scale, turned_block_scale},
                    Kind{"Mx", mx_scale, mx_scale}, Kind{"MxBySquare", mx_scale, mx_square_scale},
                    Kind{"MxBlocked", mx_blocked_scale, mx_blocked_scale},
                    Kind{"MxByRow", mx_scale, row_scale}),
    [](const auto& kind) { return kind.param.name; });

// Below: small unscaled problems whose results fit in the head. A and B hold e4m3 integers.
constexpr std::uint8_t zero = 0x00, one = 0x38, two = 0x40, three = 0x44, four = 0x48, minus = 0xB8,
                       not_a_number = 0x7F;

HostTensor e4m3(std::vector<std::int64_t> shape, const std::vector<std::uint8_t>& codes) {
  return tensor_of(DType::e4m3, std::move(shape), codes);
}

std::vector<float> small(const std::string& options, TensorMap inputs) {
  return elements_of<float>(
      run(R"("op":"gemm","a":{"dtype":"e4m3","shape":[2,2]},"b":{"dtype":"e4m3","shape":[2,2]},"d":{"dtype":"fp32"})" +
              options,
          inputs)
          .at("d"));
}

const TensorMap& small_operands() {  // product [[1,3],[2,4]]
  static const TensorMap operands{{"a", e4m3({2, 2}, {one, zero, zero, one})},
                                  {"b", e4m3({2, 2}, {one, two, three, four})}};
  return operands;
}

TensorMap with(TensorMap inputs, const std::string& name, HostTensor tensor) {
  inputs[name] = std::move(tensor);
  return inputs;
}

TEST(GemmOptions, AlphaBetaAndBias) {
  EXPECT_EQ(small("", small_operands()), (std::vector<float>{1, 3, 2, 4}));
  EXPECT_EQ(small(R"(,"alpha":0.5)", small_operands()), (std::vector<float>{0.5, 1.5, 1, 2}));
  const TensorMap c = with(small_operands(), "c", tensor_of<float>(DType::fp32, {2, 2}, {10, 20, 30, 40}));
  EXPECT_EQ(small(R"(,"alpha":2,"beta":0.1)", c), (std::vector<float>{3, 8, 7, 12}));
  const TensorMap bias =
      with(small_operands(), "bias", tensor_of<std::uint16_t>(DType::bf16, {2}, {0x3F80, 0xC000}));
  EXPECT_EQ(small(R"(,"alpha":2,"bias":{"dtype":"bf16"})", bias), (std::vector<float>{3, 4, 5, 6}));
}

TEST(GemmOptions, RoundsOnceToTheOutput) {
  // 1 + 2^-8 is a tie of bf16, which the bias tips over; fp32 on the way would lose it.
  TensorMap inputs{{"a", tensor_of<std::uint16_t>(DType::bf16, {1, 2}, {0x3F80, 0x3B80})},
                   {"b", tensor_of<std::uint16_t>(DType::bf16, {1, 2}, {0x3F80, 0x3F80})},
                   {"bias", tensor_of<float>(DType::fp32, {1}, {0x1p-40F})}};
  const TensorMap out = run(
      R"("op":"gemm","a":{"dtype":"bf16","shape":[1,2]},"b":{"dtype":"bf16","shape":[1,2]},"bias":{"dtype":"fp32"})",
      inputs);
  EXPECT_EQ(elements_of<std::uint16_t>(out.at("d")), std::vector<std::uint16_t>{0x3F81});
}

TEST(GemmOptions, Fp32Accumulation) {
  // 2^24 + 1 - 2^24 is 0 in fp32 and 1 in fp64.
  const problem::Problem problem = problem::parse(
      R"({"schema":1,"op":"gemm","a":{"dtype":"bf16","shape":[1,3]},"b":{"dtype":"bf16","shape":[1,3]},"d":{"dtype":"fp32"}})");
  const TensorMap inputs{{"a", tensor_of<std::uint16_t>(DType::bf16, {1, 3}, {0x4B80, 0x3F80, 0xCB80})},
                         {"b", tensor_of<std::uint16_t>(DType::bf16, {1, 3}, {0x3F80, 0x3F80, 0x3F80})}};
  EXPECT_EQ(elements_of<float>(reference::run(problem, inputs).at("d"))[0], 1.0F);
  EXPECT_EQ(elements_of<float>(reference::run(problem, inputs, reference::Accumulate::fp32).at("d"))[0],
            0.0F);
}

TEST(GemmOptions, SwigluEpilogue) {
  // The product's columns are 16, 2 and 0, 3: alternating pairs of gate and up, or halves.
  const TensorMap inputs{{"a", e4m3({1, 1}, {one})}, {"b", e4m3({4, 1}, {0x58, two, zero, three})}};
  const std::string head =
      R"("op":"gemm","a":{"dtype":"e4m3","shape":[1,1]},"b":{"dtype":"e4m3","shape":[4,1]},"epilogue":)";
  EXPECT_EQ(elements_of<std::uint16_t>(run(head + R"({"kind":"swiglu","interleave":true})", inputs).at("d")),
            (std::vector<std::uint16_t>{0x4200, 0x0000}));
  // halves: gates 16 and 2 with ups 0 and 3; 2 * sigmoid(2) * 3 = 5.2848.
  EXPECT_EQ(elements_of<std::uint16_t>(run(head + R"({"kind":"swiglu"})", inputs).at("d")),
            (std::vector<std::uint16_t>{0x0000, 0x40A9}));
}

TEST(GemmOptions, E4m3ByAGivenScaleWithAmax) {
  const std::string head =
      R"("op":"gemm","a":{"dtype":"e4m3","shape":[2,2]},"b":{"dtype":"e4m3","shape":[2,2]},"d":{"dtype":"e4m3","amax":true})";
  const TensorMap one_scale =
      run(head, with(small_operands(), "d_scale", tensor_of<float>(DType::fp32, {1}, {0.5F})));
  EXPECT_EQ(one_scale.at("d").bytes, (std::vector<std::uint8_t>{two, 0x4C, four, 0x50}));
  EXPECT_EQ(elements_of<float>(one_scale.at("amax")), std::vector<float>{4});
  const TensorMap row_scales =
      run(head, with(small_operands(), "d_scale", tensor_of<float>(DType::fp32, {2}, {1, 0.001F})));
  EXPECT_EQ(row_scales.at("d").bytes, (std::vector<std::uint8_t>{one, three, 0x7E, 0x7E}));  // saturates
}

TEST(GemmOptions, RequantizationIsAQuantizationOfTheResult) {
  std::mt19937 random(9);
  const Codes a = random_codes(random, 40, 64);
  const Codes b = random_codes(random, 160, 64);
  const std::string head =
      R"("op":"gemm","a":{"dtype":"e4m3","shape":[40,64]},"b":{"dtype":"e4m3","shape":[160,64]},"d":)";
  const TensorMap inputs{{"a", a.tensor}, {"b", b.tensor}};
  const HostTensor d = run(head + R"({"dtype":"fp32"})", inputs).at("d");
  for (const std::string recipe :
       {R"("scaling":"mx","block":32)", R"("scaling":"mx","block":32,"scale_layout":"blocked")",
        R"("scaling":"fp32","block":128)"}) {
    const TensorMap fused =
        run(head + R"({"dtype":"e4m3","requant":{"format":"e4m3",)" + recipe + "}}", inputs);
    const TensorMap steps =
        run(R"("op":"quantize","input":{"dtype":"fp32","shape":[40,160]},)" + recipe, {{"x", d}});
    EXPECT_EQ(fused.at("d").bytes, steps.at("q_row").bytes) << recipe;
    EXPECT_EQ(fused.at("d_scales").bytes, steps.at("s_row").bytes) << recipe;
  }
}

TEST(GemmOptions, BatchesAndBroadcast) {
  const TensorMap inputs{{"a", e4m3({1, 1, 2}, {one, two})},
                         {"b", e4m3({2, 1, 2}, {one, one, three, minus})}};
  const TensorMap out = run(
      R"("op":"gemm","a":{"dtype":"e4m3","shape":[1,1,2]},"b":{"dtype":"e4m3","shape":[2,1,2]},"d":{"dtype":"fp32"})",
      inputs);
  EXPECT_EQ(out.at("d").shape, (std::vector<std::int64_t>{2, 1, 1}));
  EXPECT_EQ(elements_of<float>(out.at("d")), (std::vector<float>{3, 1}));
}

// Group 0 is empty, the last row belongs to no group and holds NaN.
TEST(GemmGroups, RowsOfGroups) {
  const TensorMap inputs{{"a", e4m3({4, 1}, {one, two, three, not_a_number})},
                         {"b", e4m3({3, 1, 1}, {not_a_number, two, minus})},
                         {"offsets", tensor_of<std::int32_t>(DType::i32, {3}, {0, 2, 3})},
                         {"bias", tensor_of<float>(DType::fp32, {3, 1}, {100, 10, 20})}};
  const std::string head =
      R"("op":"gemm","a":{"dtype":"e4m3","shape":[4,1]},"b":{"dtype":"e4m3","shape":[3,1,1]},"d":{"dtype":"fp32"},"groups":{"kind":"m","count":3})";
  EXPECT_EQ(elements_of<float>(run(head, inputs).at("d")), (std::vector<float>{2, 4, -3, 0}));
  EXPECT_EQ(elements_of<float>(run(head + R"(,"bias":{"dtype":"fp32"})", inputs).at("d")),
            (std::vector<float>{12, 14, 17, 0}));
}

TEST(GemmGroups, MaskedRows) {
  const TensorMap inputs{{"a", e4m3({2, 2, 1}, {one, not_a_number, two, three})},
                         {"b", e4m3({2, 1, 1}, {two, three})},
                         {"counts", tensor_of<std::int32_t>(DType::i32, {2}, {1, 2})}};
  const std::string fields =
      R"("op":"gemm","a":{"dtype":"e4m3","shape":[2,2,1]},"b":{"dtype":"e4m3","shape":[2,1,1]},"d":{"dtype":"fp32"},"groups":{"kind":"m_masked","count":2})";
  EXPECT_EQ(elements_of<float>(run(fields, inputs).at("d")), (std::vector<float>{2, 0, 6, 9}));
}

TEST(GemmGroups, AnIdPerRow) {
  const TensorMap inputs{{"a", e4m3({4, 1}, {one, two, not_a_number, three})},
                         {"b", e4m3({2, 1, 1}, {two, three})},
                         {"a_scale", tensor_of<float>(DType::fp32, {4}, {1, 2, 4, 8})},
                         {"b_scale", tensor_of<float>(DType::fp32, {2, 1}, {1, 0.5F})},
                         {"ids", tensor_of<std::int32_t>(DType::i32, {4}, {1, 0, -1, 1})}};
  const std::string scaling = R"(,"scaling":{"kind":"fp32","block":"row"}})";
  const std::string fields = R"("op":"gemm","a":{"dtype":"e4m3","shape":[4,1])" + scaling +
                             R"(,"b":{"dtype":"e4m3","shape":[2,1,1])" + scaling +
                             R"(,"d":{"dtype":"fp32"},"groups":{"kind":"ids","count":2})";
  EXPECT_EQ(elements_of<float>(run(fields, inputs).at("d")), (std::vector<float>{1.5, 8, 0, 36}));
}

// Groups of 2, 0 and 1 elements; the last element belongs to none.
TEST(GemmGroups, GroupsOfTheContraction) {
  TensorMap inputs{{"a", e4m3({1, 4}, {one, two, three, not_a_number})},
                   {"b", e4m3({1, 4}, {one, one, two, one})},
                   {"a_scale", tensor_of<float>(DType::fp32, {3, 1}, {1, 1, 2})},
                   {"b_scale", tensor_of<float>(DType::fp32, {3, 1}, {0.5F, 1, 1})},
                   {"offsets", tensor_of<std::int32_t>(DType::i32, {3}, {2, 2, 3})},
                   {"c", tensor_of<float>(DType::fp32, {3, 1, 1}, {10, 20, 30})}};
  const std::string scaling = R"(,"scaling":{"kind":"fp32","block":"row"}})";
  const std::string fields = R"("op":"gemm","a":{"dtype":"e4m3","shape":[1,4])" + scaling +
                             R"(,"b":{"dtype":"e4m3","shape":[1,4])" + scaling +
                             R"(,"d":{"dtype":"fp32"},"groups":{"kind":"k","count":3})";
  EXPECT_EQ(elements_of<float>(run(fields, inputs).at("d")), (std::vector<float>{1.5, 0, 12}));
  EXPECT_EQ(elements_of<float>(run(fields + R"(,"beta":1)", inputs).at("d")),
            (std::vector<float>{11.5, 20, 42}));
}

// Groups of multiples of 128 may bring blocked scales with or without slack.
TEST(GemmGroups, DenseScalesOfAlignedGroups) {
  std::mt19937 random(21);
  const Codes a = random_codes(random, 256, 32);
  const Codes b = random_codes(random, 10, 32);
  std::vector<std::uint8_t> s = random_scale_codes(random, 256 * 4);
  const std::string fields =
      R"("op":"gemm","a":{"dtype":"e4m3","shape":[256,32],"scaling":{"kind":"mx","block":32,"layout":"blocked"}},)"
      R"("b":{"dtype":"e4m3","shape":[2,5,32]},"d":{"dtype":"fp32"},"groups":{"kind":"m","count":2})";
  TensorMap inputs{{"a", a.tensor},
                   {"b", tensor_of(DType::e4m3, {2, 5, 32}, b.tensor.bytes)},
                   {"offsets", tensor_of<std::int32_t>(DType::i32, {2}, {128, 256})},
                   {"a_scale", tensor_of(DType::u8, {1024}, s)}};
  const std::vector<float> dense = elements_of<float>(run(fields, inputs).at("d"));
  s.resize((256 + 2 * 128) * 4);
  inputs["a_scale"] = tensor_of(DType::u8, {2048}, s);
  EXPECT_EQ(elements_of<float>(run(fields, inputs).at("d")), dense);
  EXPECT_NE(dense, std::vector<float>(dense.size(), 0.0F));
}

TEST(GemmGroups, BadGroupsAreRefusedByName) {
  const auto argument = [](const std::string& fields, const TensorMap& inputs) {
    try {
      run(fields, inputs);
    } catch (const Error& error) {
      return error.code() == ErrorCode::invalid_argument ? error.argument() : "wrong code";
    }
    return std::string("accepted");
  };
  const TensorMap operands{{"a", e4m3({4, 1}, {one, one, one, one})}, {"b", e4m3({2, 1, 1}, {one, one})}};
  const std::string head =
      R"("op":"gemm","a":{"dtype":"e4m3","shape":[4,1]},"b":{"dtype":"e4m3","shape":[2,1,1]},"groups":)";
  const auto i32 = [](const std::vector<std::int32_t>& values) {
    return tensor_of(DType::i32, {static_cast<std::int64_t>(values.size())}, values);
  };
  EXPECT_EQ(argument(head + R"({"kind":"m","count":2})", with(operands, "offsets", i32({3, 2}))), "offsets");
  EXPECT_EQ(argument(head + R"({"kind":"m","count":2})", with(operands, "offsets", i32({3, 5}))), "offsets");
  EXPECT_EQ(argument(head + R"({"kind":"ids","count":2})", with(operands, "ids", i32({0, 1, 2, 0}))), "ids");
  EXPECT_EQ(argument(head + R"({"kind":"ids","count":2})", with(operands, "ids", i32({0, 1, -2, 0}))), "ids");
  const TensorMap masked{{"a", e4m3({2, 2, 1}, {one, one, one, one})}, {"b", operands.at("b")}};
  EXPECT_EQ(
      argument(
          R"("op":"gemm","a":{"dtype":"e4m3","shape":[2,2,1]},"b":{"dtype":"e4m3","shape":[2,1,1]},"groups":{"kind":"m_masked","count":2})",
          with(masked, "counts", i32({0, 3}))),
      "counts");
}

}  // namespace
}  // namespace mxjit::contract
