// MX quantization of single blocks: the values of the byte contract, typed in from its tables.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "contract/builders.hpp"

namespace mxjit::contract {
namespace {

struct Block {
  std::vector<std::uint32_t> content;  // bit patterns of the first elements; zeros follow
  int code;                            // scale code
  std::vector<int> q;                  // codes of the first elements
};

template <typename T>
void check(DType dtype, const std::string& format, const std::string& rounding,
           const std::vector<Block>& blocks) {
  std::vector<std::vector<T>> contents;
  for (const Block& block : blocks) contents.emplace_back(block.content.begin(), block.content.end());
  const std::string fields = fmt::format(
      R"("op":"quantize","input":{{"dtype":"{}","shape":[{},32]}},"format":"{}","scaling":"mx","block":32,"rounding":"{}")",
      to_string(dtype), blocks.size(), format, rounding);
  const TensorMap out = run(fields, {{"x", rows_of_32<T>(dtype, contents)}});
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    SCOPED_TRACE(fmt::format("{} {} {} block {} starting with {:#x}", to_string(dtype), format, rounding, i,
                             blocks[i].content[0]));
    EXPECT_EQ(out.at("s_row").bytes[i], blocks[i].code);
    for (std::size_t j = 0; j < blocks[i].q.size(); ++j) {
      EXPECT_EQ(out.at("q_row").bytes[i * 32 + j], blocks[i].q[j]) << "element " << j;
    }
    const int rest = blocks[i].code == 255 ? 0x7F : 0x00;
    for (std::size_t j = blocks[i].q.size(); j < 32; ++j) {
      EXPECT_EQ(out.at("q_row").bytes[i * 32 + j], rest) << "element " << j;
    }
  }
}

TEST(MxValues, SemanticCasesBf16Floor) {
  check<std::uint16_t>(DType::bf16, "e4m3", "floor",
                       {{{0x0000, 0x8000}, 0, {0x00, 0x80}},
                        {{0x0080}, 0, {0x40}},
                        {{0x7F80, 0x3F80}, 255, {0x7F, 0x7F}},
                        {{0xFF80, 0x3F80}, 255, {0x7F, 0x7F}},
                        {{0x7FC0, 0x3F80}, 255, {0x7F, 0x7F}},
                        {{0x43E0, 0xC3E0}, 127, {0x7E, 0xFE}},
                        {{0x7F7F, 0xFF7F}, 246, {0x7E, 0xFE}},
                        {{0x0001, 0x8001}, 0, {0x08, 0x88}},
                        {{0x3F80, 0x0001, 0x8001}, 119, {0x78, 0x00, 0x80}},
                        {{0x4060}, 120, {0x7E}},
                        {{0x43F0, 0xC3F0}, 127, {0x7E, 0xFE}}});
}

TEST(MxValues, SemanticCasesBf16Rceil) {
  check<std::uint16_t>(DType::bf16, "e4m3", "rceil",
                       {{{0x0000, 0x8000}, 0, {0x00, 0x80}},
                        {{0x0080}, 0, {0x40}},
                        {{0x7F80, 0x3F80}, 255, {0x7F, 0x7F}},
                        {{0xFFC1, 0x3F80}, 255, {0x7F, 0x7F}},
                        {{0x43E0, 0xC3E0}, 127, {0x7E, 0xFE}},
                        {{0x7F7F, 0xFF7F}, 247, {0x78, 0xF8}},
                        {{0x0001, 0x8001}, 0, {0x08, 0x88}},
                        {{0x3F80, 0x0001, 0x8001}, 119, {0x78, 0x00, 0x80}},
                        {{0x4060}, 120, {0x7E}},
                        {{0x43F0, 0xC3F0}, 128, {0x77, 0xF7}}});
}

TEST(MxValues, SemanticCasesFp32) {
  check<std::uint32_t>(DType::fp32, "e4m3", "floor",
                       {{{0x00000001, 0x80000001}, 0, {0x00, 0x80}},
                        {{0x7F7FFFFF, 0xFF7FFFFF}, 246, {0x7E, 0xFE}},
                        {{0x40600001}, 120, {0x7E}},
                        {{0x43FFFFFF}, 127, {0x7E}},
                        {{0x3F800000, 0x00000001, 0x80000001}, 119, {0x78, 0x00, 0x80}}});
  check<std::uint32_t>(DType::fp32, "e4m3", "rceil",
                       {{{0x00000001, 0x80000001}, 0, {0x00, 0x80}},
                        {{0x7F7FFFFF, 0xFF7FFFFF}, 247, {0x78, 0xF8}},
                        {{0x40600001}, 121, {0x76}},
                        {{0x43FFFFFF}, 128, {0x78}},
                        {{0x3F800000, 0x00000001, 0x80000001}, 119, {0x78, 0x00, 0x80}}});
}

// The cutoffs between neighbouring codes, and the one fp32 pattern where the product rounds down onto 2^-127.
TEST(MxValues, RceilCutoffs) {
  check<std::uint16_t>(DType::bf16, "e4m3", "rceil",
                       {{{0x0460}, 0, {0x7E}},
                        {{0x0461}, 1, {0x76}},
                        {{0x04DF}, 1, {0x7E}},
                        {{0x04E0}, 1, {0x7E}},
                        {{0x04E1}, 2, {0x76}},
                        {{0x43E0}, 127, {0x7E}},
                        {{0x43E1}, 128, {0x76}}});
  check<std::uint32_t>(DType::fp32, "e4m3", "rceil",
                       {{{0x04600000}, 0, {0x7E}}, {{0x04600001}, 0, {0x7E}}, {{0x04600002}, 1, {0x76}}});
  check<std::uint32_t>(DType::fp32, "e5m2", "rceil",
                       {{{0x07E00000}, 0, {0x7B}}, {{0x07E00001}, 0, {0x7B}}, {{0x07E00002}, 1, {0x77}}});
}

TEST(MxValues, CeilAndEven) {
  // CEIL: E + (m != 0) - 8. 1.0 has E 127; the next bf16 above needs one more.
  check<std::uint16_t>(
      DType::bf16, "e4m3", "ceil",
      {{{0x3F80}, 119, {0x78}}, {{0x3F81}, 120, {0x70}}, {{0x7F7F}, 247, {0x78}}, {{0x7F80}, 255, {0x7F}}});
  // EVEN: E + (m >= 0x78) - 8, and a carry into the exponent 255 poisons finite data.
  check<std::uint16_t>(DType::bf16, "e4m3", "even",
                       {{{0x3F80}, 119, {0x78}},
                        {{0x3FF7}, 119, {0x7E}},
                        {{0x3FF8}, 120, {0x78}},
                        {{0x7F77}, 246, {0x7E}},
                        {{0x7F78, 0x3F80}, 255, {0x7F, 0x7F}},
                        {{0x7F7F}, 255, {0x7F}}});
  check<std::uint16_t>(DType::bf16, "e5m2", "even",
                       {{{0x3FEF}, 112, {0x7B}}, {{0x3FF0}, 113, {0x78}}, {{0x7F70}, 255, {0x7F}}});
}

// e5m2: power of two 15, largest 57344 (code 0x7B); NaN is 0x7F there too.
TEST(MxValues, E5m2) {
  check<std::uint16_t>(
      DType::bf16, "e5m2", "floor",
      {{{0x3F80}, 112, {0x78}}, {{0x7F80}, 255, {0x7F}}, {{0x0001}, 0, {0x24}}, {{0x3FFF}, 112, {0x7B}}});
  check<std::uint16_t>(DType::bf16, "e5m2", "rceil",
                       {{{0x4760}, 127, {0x7B}}, {{0x4761}, 128, {0x77}}, {{0xC760}, 127, {0xFB}}});
}

// Ties to even, at the last place of normals and in the subnormals. A largest value of 448 keeps the
// factor 1.
TEST(MxValues, RoundsTiesToEven) {
  const std::uint32_t anchor = 0x43E00000;  // 448
  check<std::uint32_t>(
      DType::fp32, "e4m3", "rceil",
      {{{anchor, 0x3F880000, 0x3F980000, 0x3F880001, 0xBF980000},  // 1.0625, 1.1875, just above
        127,
        {0x7E, 0x38, 0x3A, 0x39, 0xBA}},
       {{anchor, 0x3A800000, 0x3A800001, 0x3B400000, 0xBA800000},  // 2^-10, above, 1.5 * 2^-9
        127,
        {0x7E, 0x00, 0x01, 0x02, 0x80}},
       {{anchor, 0x3C700000, 0x3C800000, 0x3C780000},  // 7.5 * 2^-9 ties to 8, the smallest normal
        127,
        {0x7E, 0x08, 0x08, 0x08}}});
}

TEST(MxValues, Fp16IsWidenedExactly) {
  // The smallest subnormal 2^-24 (E 103), the largest 65504 (E 142, all mantissa bits), infinity.
  check<std::uint16_t>(
      DType::fp16, "e4m3", "floor",
      {{{0x0001}, 95, {0x78}}, {{0x7BFF}, 134, {0x7E}}, {{0x7C00}, 255, {0x7F}}, {{0x3C00}, 119, {0x78}}});
  check<std::uint16_t>(DType::fp16, "e4m3", "rceil", {{{0x7BFF}, 135, {0x78}}, {{0x3F00}, 119, {0x7E}}});
}

}  // namespace
}  // namespace mxjit::contract
