// Scale layouts and groups: small matrices whose bytes are worked out by hand from the contract's formulas.
#include <gtest/gtest.h>

#include <numeric>

#include "contract/builders.hpp"
#include "mxjit/error.hpp"

namespace mxjit::contract {
namespace {

std::vector<std::uint8_t> counting(int count) {
  std::vector<std::uint8_t> out;
  for (int i = 0; i < count; ++i) out.push_back(static_cast<std::uint8_t>(i % 251 + 1));  // never zero
  return out;
}

TensorMap pack(const std::string& fields, std::vector<std::int64_t> shape,
               const std::vector<std::uint8_t>& codes, const std::vector<std::int32_t>& offsets = {}) {
  TensorMap inputs{{"s", tensor_of(DType::u8, std::move(shape), codes)}};
  if (!offsets.empty()) {
    inputs["offsets"] = tensor_of(DType::i32, {static_cast<std::int64_t>(offsets.size())}, offsets);
  }
  return run(R"("op":"pack_scales",)" + fields, inputs);
}

TEST(Layouts, DenseBytesOfATile) {
  const std::vector<std::uint8_t> codes = counting(130 * 5);
  const TensorMap out = pack(R"("scales":{"shape":[130,5]},"placement":"dense")", {130, 5}, codes);
  const std::vector<std::uint8_t>& bytes = out.at("s_blocked").bytes;
  ASSERT_EQ(bytes.size(), 256U * 8U);
  const auto code = [&](int r, int c) { return codes[static_cast<std::size_t>(r * 5 + c)]; };
  EXPECT_EQ(bytes[0], code(0, 0));
  EXPECT_EQ(bytes[3], code(0, 3));
  EXPECT_EQ(bytes[4], code(32, 0));
  EXPECT_EQ(bytes[16], code(1, 0));
  EXPECT_EQ(bytes[12 + 1], code(96, 1));
  EXPECT_EQ(bytes[31 * 16 + 15], code(127, 3));
  EXPECT_EQ(bytes[512], code(0, 4));     // second tile of the first tile row
  EXPECT_EQ(bytes[1024], code(128, 0));  // second tile row
  EXPECT_EQ(bytes[1024 + 17], code(129, 1));
  EXPECT_EQ(bytes[1536 + 16], code(129, 4));
  int live = 0;
  for (const std::uint8_t byte : bytes) live += byte != 0 ? 1 : 0;
  EXPECT_EQ(live, 130 * 5);  // everything else is padding
}

TEST(Layouts, MGroupsStartOnTiles) {
  const std::vector<std::uint8_t> codes = counting(10 * 2);
  // Groups of 3, 0 and 5 rows; 2 rows belong to none.
  const TensorMap out = pack(R"("scales":{"shape":[10,2]},"placement":"m_groups","groups":{"count":3})",
                             {10, 2}, codes, {3, 3, 8});
  const std::vector<std::uint8_t>& bytes = out.at("s_blocked").bytes;
  ASSERT_EQ(bytes.size(), (10U + 3U * 128U) * 4U);
  EXPECT_EQ(bytes[0], codes[0]);
  EXPECT_EQ(bytes[2 * 16 + 1], codes[2 * 2 + 1]);
  EXPECT_EQ(bytes[3 * 16], 0);          // past the group
  EXPECT_EQ(bytes[512], codes[3 * 2]);  // the empty group took nothing
  EXPECT_EQ(bytes[512 + 4 * 16 + 1], codes[7 * 2 + 1]);
  int live = 0;
  for (const std::uint8_t byte : bytes) live += byte != 0 ? 1 : 0;
  EXPECT_EQ(live, 16);
}

TEST(Layouts, KGroupsAreMatricesOfTheirOwnWidth) {
  const std::vector<std::uint8_t> codes = counting(130 * 8);
  // Groups of 1, 0 and 5 columns; 2 columns belong to none. Bases: 0, 256*4, 256*4; the last takes 256*8
  // bytes.
  const TensorMap out = pack(R"("scales":{"shape":[130,8]},"placement":"k_groups","groups":{"count":3})",
                             {130, 8}, codes, {1, 1, 6});
  const std::vector<std::uint8_t>& bytes = out.at("s_blocked").bytes;
  ASSERT_EQ(bytes.size(), 256U * (8U + 12U));
  const auto code = [&](int r, int c) { return codes[static_cast<std::size_t>(r * 8 + c)]; };
  EXPECT_EQ(bytes[0], code(0, 0));
  EXPECT_EQ(bytes[1], 0);
  EXPECT_EQ(bytes[512 + 16], code(129, 0));  // one tile a row block in a group of width 1
  EXPECT_EQ(bytes[1024], code(0, 1));
  EXPECT_EQ(bytes[1024 + 512], code(0, 5));
  EXPECT_EQ(bytes[1024 + 1024], code(128, 1));  // two tiles a row block in a group of width 5
  EXPECT_EQ(bytes[1024 + 1024 + 512 + 16], code(129, 5));
  int live = 0;
  for (const std::uint8_t byte : bytes) live += byte != 0 ? 1 : 0;
  EXPECT_EQ(live, 130 * 6);
}

TEST(Layouts, UnpackReturnsTheCodes) {
  struct Case {
    std::string fields;
    std::vector<std::int64_t> shape;
    std::vector<std::int32_t> offsets;
    int live;  // codes that the groups own
  };
  const std::vector<Case> cases = {
      {R"("scales":{"shape":[130,5]},"placement":"dense")", {130, 5}, {}, 650},
      {R"("scales":{"shape":[3,33,5]},"placement":"per_expert")", {3, 33, 5}, {}, 495},
      {R"("scales":{"shape":[130,5]},"placement":"m_groups","groups":{"count":2})", {130, 5}, {40, 100}, 500},
      {R"("scales":{"shape":[130,5]},"placement":"k_groups","groups":{"count":2})", {130, 5}, {2, 4}, 520}};
  for (const Case& c : cases) {
    SCOPED_TRACE(c.fields);
    const std::int64_t count =
        std::accumulate(c.shape.begin(), c.shape.end(), std::int64_t{1}, std::multiplies<>());
    const std::vector<std::uint8_t> codes = counting(static_cast<int>(count));
    TensorMap inputs = pack(c.fields, c.shape, codes, c.offsets);
    if (!c.offsets.empty()) {
      inputs["offsets"] = tensor_of(DType::i32, {static_cast<std::int64_t>(c.offsets.size())}, c.offsets);
    }
    const std::vector<std::uint8_t> back = run(R"("op":"unpack_scales",)" + c.fields, inputs).at("s").bytes;
    int same = 0;
    for (std::size_t i = 0; i < codes.size(); ++i) {
      same += back[i] == codes[i] ? 1 : 0;
      EXPECT_TRUE(back[i] == codes[i] || back[i] == 0) << i;
    }
    EXPECT_EQ(same, c.live);
  }
}

// 1.0 times powers of two: every code of the matrix can be told from its block.
HostTensor powers(std::int64_t rows, std::int64_t cols) {
  std::vector<std::uint16_t> x;
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < cols; ++c) {
      x.push_back(static_cast<std::uint16_t>((50 + r / 32 + 10 * (c / 32)) << 7));  // exponent field
    }
  }
  return tensor_of(DType::bf16, {rows, cols}, x);
}

TEST(Layouts, RowScalesOfUnalignedGroupsAreMPlaced) {
  const TensorMap out = run(
      R"("op":"quantize","input":{"dtype":"bf16","shape":[96,64]},"scaling":"mx","block":32,"scale_layout":"blocked",)"
      R"("groups":{"count":2,"axis":"m","alignment":1})",
      {{"x", powers(96, 64)}, {"offsets", tensor_of<std::int32_t>(DType::i32, {2}, {33, 90})}});
  const std::vector<std::uint8_t>& s = out.at("s_row").bytes;
  ASSERT_EQ(s.size(), (96U + 256U) * 4U);
  EXPECT_EQ(s[0], 50 - 8);                          // row 0, block 0
  EXPECT_EQ(s[1], 60 - 8);                          // row 0, block 1
  EXPECT_EQ(s[4], 51 - 8);                          // row 32
  EXPECT_EQ(s[4 + 16], 0);                          // row 33 is in the other group
  EXPECT_EQ(s[512], 51 - 8);                        // row 33
  EXPECT_EQ(s[512 + 31 * 16], 52 - 8);              // row 64
  EXPECT_EQ(s[512 + 24 * 16 + 4], 52 - 8);          // row 89, the last owned
  EXPECT_EQ(s[512 + 25 * 16 + 4], 0);               // row 90 belongs to no group
  EXPECT_EQ(out.at("q_row").bytes[95 * 64], 0x78);  // the data of all rows is written
}

TEST(Layouts, ColScalesAreKPlacedAndTheTailIsZero) {
  const TensorMap out = run(
      R"("op":"quantize","input":{"dtype":"bf16","shape":[160,64]},"scaling":"mx","block":32,"axes":["col"],)"
      R"("scale_layout":"blocked","groups":{"count":3,"axis":"m","alignment":32})",
      {{"x", powers(160, 64)}, {"offsets", tensor_of<std::int32_t>(DType::i32, {3}, {32, 32, 128})}});
  const std::vector<std::uint8_t>& s = out.at("s_col").bytes;
  ASSERT_EQ(s.size(), 128U * (5U + 12U));
  EXPECT_EQ(s[0], 42);        // column 0 of x, rows 0..31
  EXPECT_EQ(s[4], 52);        // column 32
  EXPECT_EQ(s[1], 0);         // the group is one block wide
  EXPECT_EQ(s[512], 43);      // the third group, rows 32..63
  EXPECT_EQ(s[512 + 2], 45);  // rows 96..127
  EXPECT_EQ(s[512 + 3], 0);   // rows 128..159 belong to no group
  EXPECT_EQ(s[1024], 0);
  EXPECT_EQ(out.at("q_col").bytes[159], 0x78);
}

TEST(Layouts, TallBlocksRepeatTheirCodes) {
  const TensorMap plain = run(
      R"("op":"quantize","input":{"dtype":"bf16","shape":[64,40]},"scaling":"mx","block":[32,32],"axes":["row","col"])",
      {{"x", powers(64, 40)}});
  EXPECT_EQ(plain.at("s_row").shape, (std::vector<std::int64_t>{2, 2}));
  EXPECT_EQ(plain.at("s_row").bytes, (std::vector<std::uint8_t>{42, 52, 43, 53}));
  EXPECT_EQ(plain.at("s_col").bytes, (std::vector<std::uint8_t>{42, 43, 52, 53}));
  const TensorMap blocked = run(
      R"("op":"quantize","input":{"dtype":"bf16","shape":[64,40]},"scaling":"mx","block":[32,32],"axes":["row"],"scale_layout":"blocked")",
      {{"x", powers(64, 40)}});
  const std::vector<std::uint8_t>& s = blocked.at("s_row").bytes;
  ASSERT_EQ(s.size(), 512U);
  for (std::size_t r = 0; r < 32; ++r) {
    EXPECT_EQ(s[r * 16], 42) << r;
    EXPECT_EQ(s[r * 16 + 4], 43) << r;
    EXPECT_EQ(s[r * 16 + 5], 53) << r;
    EXPECT_EQ(s[r * 16 + 8], 0) << r;
  }
}

TEST(Layouts, AColInputIsTheTransposeInMemory) {
  const HostTensor x = powers(64, 96);
  std::vector<std::uint16_t> transposed;
  for (std::size_t c = 0; c < 96; ++c) {
    for (std::size_t r = 0; r < 64; ++r) transposed.push_back(elements_of<std::uint16_t>(x)[r * 96 + c]);
  }
  const std::string rest = R"(,"scaling":"mx","block":32,"axes":["row","col"])";
  const TensorMap row = run(R"("op":"quantize","input":{"dtype":"bf16","shape":[64,96]})" + rest, {{"x", x}});
  const TensorMap col =
      run(R"("op":"quantize","input":{"dtype":"bf16","shape":[64,96],"layout":"col"})" + rest,
          {{"x", tensor_of(DType::bf16, {96, 64}, transposed)}});
  EXPECT_EQ(row.at("s_row").bytes[5], 62);  // row 1, the third block
  for (const auto& [name, tensor] : row) EXPECT_EQ(col.at(name).bytes, tensor.bytes) << name;
}

TEST(Layouts, PaddingGroups) {
  std::vector<std::uint8_t> x(6 * 2);
  std::iota(x.begin(), x.end(), std::uint8_t{1});
  const HostTensor offsets = tensor_of<std::int32_t>(DType::i32, {3}, {2, 2, 5});
  const TensorMap out =
      run(R"("op":"pad_groups","input":{"dtype":"e4m3","shape":[6,2]},"groups":{"count":3},"alignment":4)",
          {{"x", tensor_of(DType::e4m3, {6, 2}, x)}, {"offsets", offsets}});
  EXPECT_EQ(out.at("x_padded").shape, (std::vector<std::int64_t>{20, 2}));
  std::vector<std::uint8_t> expected(40, 0);
  std::iota(expected.begin(), expected.begin() + 4, std::uint8_t{1});
  std::iota(expected.begin() + 8, expected.begin() + 14, std::uint8_t{5});
  EXPECT_EQ(out.at("x_padded").bytes, expected);
  EXPECT_EQ(elements_of<std::int32_t>(out.at("starts")), (std::vector<std::int32_t>{0, 4, 4}));
  EXPECT_EQ(elements_of<std::int32_t>(out.at("ends")), (std::vector<std::int32_t>{4, 4, 8}));

  const TensorMap back =
      run(R"("op":"unpad_groups","input":{"dtype":"e4m3","shape":[6,2]},"groups":{"count":3},"alignment":4)",
          {{"x_padded", out.at("x_padded")}, {"offsets", offsets}, {"starts", out.at("starts")}});
  x[10] = x[11] = 0;  // the row that no group owns
  EXPECT_EQ(back.at("x").bytes, x);
}

TEST(Layouts, EmptyMatrices) {
  for (const std::string shape : {"[0,64]", "[64,0]", "[0,0]"}) {
    const problem::Problem problem =
        problem::parse(R"({"schema":1,"op":"quantize","input":{"dtype":"bf16","shape":)" + shape +
                       R"(},"scaling":"mx","block":32,"axes":["row","col"],"scale_layout":"blocked"})");
    HostTensor x;
    for (const problem::TensorDecl& decl : problem::tensors(problem)) {
      if (decl.name == "x") x = tensor_of<std::uint16_t>(decl.dtype, decl.shape, {});
    }
    const TensorMap out = reference::run(problem, {{"x", x}});
    EXPECT_TRUE(out.at("q_row").bytes.empty()) << shape;
    EXPECT_TRUE(out.at("q_col").bytes.empty()) << shape;
    for (const char* name : {"s_row", "s_col"}) {
      for (const std::uint8_t byte : out.at(name).bytes) EXPECT_EQ(byte, 0) << shape << name;
    }
  }
}

}  // namespace
}  // namespace mxjit::contract
