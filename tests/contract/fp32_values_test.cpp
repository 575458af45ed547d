// FP8 with float scales: values of the contract worked out by hand, special values, caps, groups.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "contract/builders.hpp"

namespace mxjit::contract {
namespace {

constexpr float inf = std::numeric_limits<float>::infinity();
const float nan_value = std::nanf("");

// Rows of `cols` fp32 values: the first elements, then zeros.
HostTensor rows_of(std::int64_t cols, const std::vector<std::vector<float>>& contents) {
  std::vector<float> all;
  for (std::vector<float> row : contents) {
    row.resize(static_cast<std::size_t>(cols));
    all.insert(all.end(), row.begin(), row.end());
  }
  return tensor_of(DType::fp32, {static_cast<std::int64_t>(contents.size()), cols}, all);
}

TensorMap by_rows(const std::string& options, const std::vector<std::vector<float>>& contents) {
  return run(R"("op":"quantize","input":{"dtype":"fp32","shape":[)" + std::to_string(contents.size()) +
                 R"(,4]},"scaling":"fp32","block":"row")" + options,
             {{"x", rows_of(4, contents)}});
}

TEST(Fp32Values, RowScales) {
  const TensorMap out = by_rows("", {{448, -448, 1, 0.0F}, {3, -1.5F}, {0, -0.0F}, {1e-13F, -1e-13F}});
  const std::vector<float> s = elements_of<float>(out.at("s_row"));
  EXPECT_EQ(s[0], 1.0F);
  EXPECT_EQ(s[1], 1.0F / static_cast<float>(448.0 / 3.0));
  const auto floor_factor = std::bit_cast<float>(0x57CBBA10U);  // fp32(448 / 1e-12)
  EXPECT_EQ(s[2], 1.0F / floor_factor);
  EXPECT_EQ(s[3], 1.0F / floor_factor);
  const std::vector<std::uint8_t> q = {0x7E, 0xFE, 0x38, 0x00, 0x7E, 0xF6, 0x00, 0x00,
                                       0x00, 0x80, 0x00, 0x00, 0x63, 0xE3, 0x00, 0x00};  // 44.8 rounds to 44
  EXPECT_EQ(out.at("q_row").bytes, q);
}

TEST(Fp32Values, PowersOfTwo) {
  const TensorMap out = by_rows(R"(,"rounding":"pow2")", {{448, -224}, {449}, {3}, {0}});
  const std::vector<float> s = elements_of<float>(out.at("s_row"));
  EXPECT_EQ(s[0], 1.0F);
  EXPECT_EQ(s[1], 2.0F);           // t is just below 1
  EXPECT_EQ(s[2], 1.0F / 128.0F);  // t = 149.3
  EXPECT_EQ(s[3], std::ldexp(1.0F, -48));
  EXPECT_EQ(out.at("q_row").bytes[0], 0x7E);
  EXPECT_EQ(out.at("q_row").bytes[1], 0xF6);
  EXPECT_EQ(out.at("q_row").bytes[4], 0x76);  // 224.5 rounds to 224
  EXPECT_EQ(out.at("q_row").bytes[8], 0x7C);  // 384
}

TEST(Fp32Values, SpecialValues) {
  const TensorMap out =
      by_rows("", {{inf, 1, -1, 0}, {-inf, inf, 5, 5}, {nan_value, inf, 1, 0}, {1, 2, -nan_value, 4}});
  const std::vector<float> s = elements_of<float>(out.at("s_row"));
  EXPECT_EQ(s[0], inf);
  EXPECT_EQ(s[1], inf);
  EXPECT_TRUE(std::isnan(s[2]));
  EXPECT_TRUE(std::isnan(s[3]));
  const std::vector<std::uint8_t> q = {0x7F, 0x00, 0x80, 0x00, 0x7F, 0x7F, 0x00, 0x00,
                                       0x7F, 0x7F, 0x7F, 0x7F, 0x7F, 0x7F, 0x7F, 0x7F};
  EXPECT_EQ(out.at("q_row").bytes, q);
}

TEST(Fp32Values, ACapBoundsTheScaleAndSaturates) {
  const TensorMap out = by_rows(R"(,"amax_cap":448)", {{896, 224, -896}, {224}, {inf, -inf, 1}, {nan_value}});
  const std::vector<float> s = elements_of<float>(out.at("s_row"));
  EXPECT_EQ(s[0], 1.0F);
  EXPECT_EQ(s[1], 0.5F);
  EXPECT_EQ(s[2], 1.0F);
  EXPECT_TRUE(std::isnan(s[3]));
  const std::vector<std::uint8_t> q = {0x7E, 0x76, 0xFE, 0x00, 0x7E, 0x00, 0x00, 0x00,
                                       0x7E, 0xFE, 0x38, 0x00, 0x7F, 0x7F, 0x7F, 0x7F};
  EXPECT_EQ(out.at("q_row").bytes, q);
}

TEST(Fp32Values, E5m2) {
  const TensorMap out = by_rows(R"(,"format":"e5m2")", {{57344, -57344, 1}, {nan_value}});
  EXPECT_EQ(elements_of<float>(out.at("s_row"))[0], 1.0F);
  const std::vector<std::uint8_t> q = {0x7B, 0xFB, 0x3C, 0x00, 0x7F, 0x7F, 0x7F, 0x7F};
  EXPECT_EQ(out.at("q_row").bytes, q);
}

TEST(Fp32Values, OneScaleForTheTensor) {
  const std::string fields =
      R"("op":"quantize","input":{"dtype":"fp32","shape":[2,2,2]},"scaling":"fp32","block":"tensor","axes":["row","col"])";
  const HostTensor x = tensor_of<float>(DType::fp32, {2, 2, 2}, {1, 2, 4, 8, 16, 32, 64, -448});
  const TensorMap out = run(fields, {{"x", x}});
  EXPECT_EQ(elements_of<float>(out.at("s_row")), std::vector<float>{1.0F});
  EXPECT_EQ(elements_of<float>(out.at("s_col")), std::vector<float>{1.0F});
  EXPECT_EQ(out.at("q_row").bytes,
            (std::vector<std::uint8_t>{0x38, 0x40, 0x48, 0x50, 0x58, 0x60, 0x68, 0xFE}));
  EXPECT_EQ(out.at("q_col").bytes,
            (std::vector<std::uint8_t>{0x38, 0x48, 0x40, 0x50, 0x58, 0x68, 0x60, 0xFE}));
}

// Blocks of 128 with a short last one; the transposed scale matrix padded to a multiple of 4.
TEST(Fp32Values, BlocksAndTheTransposedScaleMatrix) {
  std::vector<float> x(5 * 130, 0.0F);
  for (std::size_t r = 0; r < 5; ++r) {
    x[r * 130] = 448.0F * std::ldexp(1.0F, static_cast<int>(r));
    x[r * 130 + 129] = 7.0F * 448.0F;
  }
  const std::string head = R"("op":"quantize","input":{"dtype":"fp32","shape":[5,130]},"scaling":"fp32",)";
  const TensorMap inputs{{"x", tensor_of(DType::fp32, {5, 130}, x)}};
  const float seven = 1.0F / static_cast<float>(448.0 / (7.0 * 448.0));
  const TensorMap plain = run(head + R"("block":128)", inputs);
  EXPECT_EQ(elements_of<float>(plain.at("s_row")),
            (std::vector<float>{1, seven, 2, seven, 4, seven, 8, seven, 16, seven}));
  const TensorMap turned = run(head + R"("block":128,"scale_layout":"mn_major")", inputs);
  EXPECT_EQ(turned.at("s_row").shape, (std::vector<std::int64_t>{2, 8}));
  EXPECT_EQ(elements_of<float>(turned.at("s_row")),
            (std::vector<float>{1, 2, 4, 8, 16, 0, 0, 0, seven, seven, seven, seven, seven, 0, 0, 0}));
  const TensorMap square = run(head + R"("block":[128,128],"axes":["row","col"])", inputs);
  EXPECT_EQ(elements_of<float>(square.at("s_row")), (std::vector<float>{16, seven}));
  EXPECT_EQ(square.at("s_col").shape, (std::vector<std::int64_t>{2, 1}));
  EXPECT_EQ(elements_of<float>(square.at("s_col")), (std::vector<float>{16, seven}));
}

TEST(Fp32Values, ColumnsInsideGroups) {
  // Groups of 1, 0 and 2 rows; the last row belongs to none.
  const TensorMap out = run(
      R"("op":"quantize","input":{"dtype":"fp32","shape":[4,2]},"scaling":"fp32","block":"row","axes":["col"],)"
      R"("groups":{"count":3,"axis":"m","alignment":1})",
      {{"x", tensor_of<float>(DType::fp32, {4, 2}, {448, 896, 224, 1, -112, 448, 5, 5})},
       {"offsets", tensor_of<std::int32_t>(DType::i32, {3}, {1, 1, 3})}});
  const float empty = 1.0F / std::bit_cast<float>(0x57CBBA10U);
  EXPECT_EQ(elements_of<float>(out.at("s_col")), (std::vector<float>{1, 2, empty, empty, 0.5F, 1}));
  EXPECT_EQ(out.at("q_col").bytes,
            (std::vector<std::uint8_t>{0x7E, 0x7E, 0xF6, 0x00, 0x7E, 0x38, 0x7E, 0x00}));
}

}  // namespace
}  // namespace mxjit::contract
