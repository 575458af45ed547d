// What the reference refuses, and that it says which tensor is wrong.
#include <gtest/gtest.h>

#include "contract/builders.hpp"
#include "mxjit/error.hpp"

namespace mxjit::contract {
namespace {

struct BadInput {
  std::string name;
  std::string fields;
  TensorMap inputs;
  std::string argument;
  std::string message;
};

HostTensor bf16_zeros(std::vector<std::int64_t> shape) {
  const std::int64_t count = shape[0] * shape[1];
  return tensor_of(DType::bf16, std::move(shape),
                   std::vector<std::uint16_t>(static_cast<std::size_t>(count)));
}

HostTensor ends(const std::vector<std::int32_t>& values) {
  return tensor_of(DType::i32, {static_cast<std::int64_t>(values.size())}, values);
}

std::vector<BadInput> bad_inputs() {
  const std::string mx =
      R"("op":"quantize","input":{"dtype":"bf16","shape":[256,32]},"scaling":"mx","block":32)";
  const std::string grouped = mx + R"(,"groups":{"count":2,"axis":"m"})";
  const std::string grouped32 = mx + R"(,"axes":["col"],"groups":{"count":2,"axis":"m","alignment":32})";
  const HostTensor x = bf16_zeros({256, 32});
  HostTensor short_x = x;
  short_x.bytes.pop_back();
  const std::string unpad =
      R"("op":"unpad_groups","input":{"dtype":"bf16","shape":[4,2]},"groups":{"count":1},"alignment":4)";
  const HostTensor padded = bf16_zeros({8, 2});
  return {
      {"Missing", mx, {}, "x", "missing"},
      {"WrongDtype",
       mx,
       {{"x", tensor_of(DType::fp16, {256, 32}, std::vector<std::uint16_t>(8192))}},
       "x",
       "bf16"},
      {"WrongShape", mx, {{"x", bf16_zeros({32, 256})}}, "x", "expected shape [256,32], got [32,256]"},
      {"WrongRank",
       mx,
       {{"x", tensor_of(DType::bf16, {8192}, std::vector<std::uint16_t>(8192))}},
       "x",
       "[8192]"},
      {"WrongSize", mx, {{"x", short_x}}, "x", "holds 16383"},
      {"NoOffsets", grouped, {{"x", x}}, "offsets", "missing"},
      {"OffsetsLength", grouped, {{"x", x}, {"offsets", ends({128})}}, "offsets", "expected shape [2]"},
      {"OffsetsFall", grouped, {{"x", x}, {"offsets", ends({256, 128})}}, "offsets", "at least 256"},
      {"OffsetsNegative", grouped, {{"x", x}, {"offsets", ends({-128, 128})}}, "offsets", "at least 0"},
      {"OffsetsPastM", grouped, {{"x", x}, {"offsets", ends({128, 384})}}, "offsets", "at most 256"},
      {"OffsetsBreak128", grouped, {{"x", x}, {"offsets", ends({128, 160})}}, "offsets", "multiple of 128"},
      {"OffsetsBreak32", grouped32, {{"x", x}, {"offsets", ends({32, 65})}}, "offsets", "multiple of 32"},
      {"StartsNegative",
       unpad,
       {{"x_padded", padded}, {"offsets", ends({4})}, {"starts", ends({-1})}},
       "starts",
       "at least 0"},
      {"StartsPastTheEnd",
       unpad,
       {{"x_padded", padded}, {"offsets", ends({4})}, {"starts", ends({5})}},
       "starts",
       "at most 4"},
  };
}

class BadInputs : public testing::TestWithParam<BadInput> {};

TEST_P(BadInputs, AreRefusedByName) {
  try {
    run(GetParam().fields, GetParam().inputs);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_EQ(error.argument(), GetParam().argument);
    EXPECT_NE(std::string(error.what()).find(GetParam().message), std::string::npos) << error.what();
  }
}

INSTANTIATE_TEST_SUITE_P(Inputs, BadInputs, testing::ValuesIn(bad_inputs()),
                         [](const auto& input) { return input.param.name; });

}  // namespace
}  // namespace mxjit::contract
