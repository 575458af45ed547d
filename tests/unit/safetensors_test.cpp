// The safetensors reader and writer: round trips, and every way a header can lie.
#include "safetensors/safetensors.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "mxjit/error.hpp"

namespace mxjit::safetensors {
namespace {

std::string length_field(std::uint64_t length) {
  std::string out;
  for (int i = 0; i < 8; ++i) out += static_cast<char>(length >> (8 * i) & 0xFF);
  return out;
}

std::string image(const std::string& header, const std::string& data) {
  return length_field(header.size()) + header + data;
}

HostTensor tensor(DType dtype, std::vector<std::int64_t> shape, std::vector<std::uint8_t> bytes) {
  HostTensor out;
  out.dtype = dtype;
  out.shape = std::move(shape);
  out.bytes = std::move(bytes);
  return out;
}

TEST(Safetensors, ReadsAFileTypedByHand) {
  const std::string data("\x01\x02\x03\x04\x05\x06", 6);
  const File file = parse(image(
      R"({"b":{"dtype":"U8","shape":[2],"data_offsets":[4,6]},"__metadata__":{"k":"v"},"a":{"dtype":"BF16","shape":[1,2],"data_offsets":[0,4]}}   )",
      data));
  ASSERT_EQ(file.tensors.size(), 2U);
  EXPECT_EQ(file.tensors.at("a").dtype, DType::bf16);
  EXPECT_EQ(file.tensors.at("a").shape, (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(file.tensors.at("a").bytes, (std::vector<std::uint8_t>{1, 2, 3, 4}));
  EXPECT_EQ(file.tensors.at("b").bytes, (std::vector<std::uint8_t>{5, 6}));
  EXPECT_EQ(file.metadata, (std::map<std::string, std::string>{{"k", "v"}}));
}

TEST(Safetensors, KnowsEveryDtypeName) {
  const std::vector<std::pair<std::string, std::pair<DType, int>>> names = {
      {"BF16", {DType::bf16, 2}},    {"F16", {DType::fp16, 2}},     {"F32", {DType::fp32, 4}},
      {"F64", {DType::fp64, 8}},     {"F8_E4M3", {DType::e4m3, 1}}, {"F8_E5M2", {DType::e5m2, 1}},
      {"F8_E8M0", {DType::e8m0, 1}}, {"U8", {DType::u8, 1}},        {"I8", {DType::i8, 1}},
      {"U16", {DType::u16, 2}},      {"I16", {DType::i16, 2}},      {"U32", {DType::u32, 4}},
      {"I32", {DType::i32, 4}},      {"U64", {DType::u64, 8}},      {"I64", {DType::i64, 8}},
      {"BOOL", {DType::boolean, 1}}};
  for (const auto& [name, expected] : names) {
    const auto [dtype, size] = expected;
    const std::string header =
        R"({"t":{"dtype":")" + name + R"(","shape":[1],"data_offsets":[0,)" + std::to_string(size) + "]}}";
    const File file = parse(image(header, std::string(static_cast<std::size_t>(size), 'x')));
    EXPECT_EQ(file.tensors.at("t").dtype, dtype) << name;
    EXPECT_NE(serialize(file).find("\"" + name + "\""), std::string::npos) << name;
  }
}

TEST(Safetensors, WritesTheBytesTypedByHand) {
  File file;
  file.tensors["b"] = tensor(DType::u8, {2}, {7, 8});
  file.tensors["c"] = tensor(DType::fp32, {1}, {1, 2, 3, 4});
  file.tensors["a"] = tensor(DType::u8, {0}, {});
  file.metadata["k"] = "v";
  const std::string header =
      R"({"__metadata__":{"k":"v"},"c":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"U8","shape":[0],"data_offsets":[4,4]},"b":{"dtype":"U8","shape":[2],"data_offsets":[4,6]}})";
  ASSERT_EQ(header.size(), 183U);
  EXPECT_EQ(serialize(file), length_field(184) + header + " " + std::string("\x01\x02\x03\x04\x07\x08", 6));
}

TEST(Safetensors, RoundTripsScalarsEmptyTensorsAndNothing) {
  File file;
  EXPECT_TRUE(parse(serialize(file)).tensors.empty());
  file.tensors["scalar"] = tensor(DType::fp64, {}, {0, 1, 2, 3, 4, 5, 6, 7});
  file.tensors["empty"] = tensor(DType::bf16, {3, 0, 5}, {});
  file.tensors["\"quote\\ \n \xC3\xA9"] = tensor(DType::u8, {1}, {9});
  const File back = parse(serialize(file));
  ASSERT_EQ(back.tensors.size(), 3U);
  for (const auto& [name, expected] : file.tensors) {
    EXPECT_EQ(back.tensors.at(name).bytes, expected.bytes) << name;
    EXPECT_EQ(back.tensors.at(name).shape, expected.shape) << name;
    EXPECT_EQ(back.tensors.at(name).dtype, expected.dtype) << name;
  }
}

struct BadFile {
  std::string name;
  std::string image;
  std::string message;   // what the error must say
  std::string argument;  // the tensor it must name
};

std::string one(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return R"({"t":{"dtype":)" + dtype + R"(,"shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}";
}

std::vector<BadFile> bad_files() {
  const std::string good = one("\"U8\"", "[4]", "[0,4]");
  std::string deep_array;
  std::string deep_object = "{\"a\":";
  for (int i = 0; i < 20000; ++i) deep_array += '[';
  for (int i = 0; i < 20000; ++i) deep_object += "{\"a\":";
  const std::string half = R"("h":{"dtype":"U8","shape":[2],"data_offsets":[0,2]})";
  return {
      {"Empty", "", "truncated", ""},
      {"SevenBytes", std::string(7, '\0'), "truncated", ""},
      {"LengthOnly", length_field(2), "truncated", ""},
      {"LyingLength", length_field(good.size() + 10) + good + "abcd", "truncated", ""},
      {"OversizedLength", length_field(100'000'001) + good, "exceeds", ""},
      {"HugeLength", length_field(~std::uint64_t{0}) + good, "exceeds", ""},
      {"LengthZero", length_field(0), "must start with '{'", ""},
      {"TruncatedData", image(good, "abc"), "leave the 3 bytes", "t"},
      {"ExtraData", image(good, "abcde"), "cover 4 bytes of data, the file holds 5", ""},
      {"NotJson", image("{nonsense", ""), "not JSON", ""},
      {"LeadingSpace", image(" {}", ""), "must start with '{'", ""},
      {"TrailingText", image("{}x", ""), "not JSON", ""},
      {"TwoDocuments", image("{}{}", ""), "not JSON", ""},
      {"NotUtf8", image("{\"\xFF\":{}}", ""), "not JSON in UTF-8", ""},
      {"RootIsArray", image("[]", ""), "must start with '{'", ""},
      {"TensorIsNumber", image(R"({"t":1})", ""), "tensor \"t\": expected an object", "t"},
      {"TensorIsNull", image(R"({"t":null})", ""), "tensor \"t\": expected an object", "t"},
      {"TensorIsArray", image(R"({"t":[1]})", ""), "tensor \"t\": expected an object", "t"},
      {"NoDtype", image(R"({"t":{"shape":[4],"data_offsets":[0,4]}})", "abcd"), "expected dtype, shape", "t"},
      {"EmptyTensorObject", image(R"({"t":{}})", ""), "expected dtype, shape", "t"},
      {"UnknownKey", image(R"({"t":{"dtype":"U8","shape":[1],"offset":[0,1]}})", "a"),
       "unknown key \"offset\"", "t"},
      {"DuplicateKey", image(R"({"t":{"dtype":"U8","dtype":"U8"}})", ""), "duplicate key \"dtype\"", "t"},
      {"DuplicateName", image("{" + half + "," + half + "}", "ab"), "duplicate name \"h\"", "h"},
      {"UnknownDtype", image(one("\"F4\"", "[4]", "[0,4]"), "abcd"), "unknown dtype \"F4\"", "t"},
      {"LowerCaseDtype", image(one("\"u8\"", "[4]", "[0,4]"), "abcd"), "unknown dtype", "t"},
      {"DtypeIsNumber", image(one("8", "[4]", "[0,4]"), "abcd"), "expected a string for dtype", "t"},
      {"ShapeIsNumber", image(one("\"U8\"", "4", "[0,4]"), "abcd"), "expected an array for shape", "t"},
      {"ShapeNegative", image(one("\"U8\"", "[-4]", "[0,4]"), "abcd"), "non-negative integers in shape", "t"},
      {"ShapeFloat", image(one("\"U8\"", "[4.0]", "[0,4]"), "abcd"), "non-negative integers in shape", "t"},
      {"ShapeExponent", image(one("\"U8\"", "[4e0]", "[0,4]"), "abcd"), "non-negative integers in shape",
       "t"},
      {"ShapeNested", image(one("\"U8\"", "[[4]]", "[0,4]"), "abcd"), "non-negative integers in shape", "t"},
      {"ShapeTrue", image(one("\"U8\"", "[true]", "[0,1]"), "a"), "non-negative integers in shape", "t"},
      {"ExtentTooLarge", image(one("\"U8\"", "[9223372036854775808]", "[0,4]"), "abcd"), "too large", "t"},
      {"ProductOverflows", image(one("\"U8\"", "[4294967296,4294967296]", "[0,0]"), ""), "overflows", "t"},
      {"ProductOfBytesOverflows", image(one("\"F64\"", "[2305843009213693952]", "[0,0]"), ""), "overflows",
       "t"},
      {"OverflowBesideZero", image(one("\"U8\"", "[0,4294967296,4294967296]", "[0,0]"), ""), "overflows",
       "t"},
      {"ShapeDisagrees", image(one("\"U8\"", "[3]", "[0,4]"), "abcd"), "takes 3 bytes", "t"},
      {"DtypeDisagrees", image(one("\"F32\"", "[4]", "[0,4]"), "abcd"), "takes 16 bytes", "t"},
      {"OneOffset", image(one("\"U8\"", "[4]", "[4]"), "abcd"), "must hold 2 numbers", "t"},
      {"ThreeOffsets", image(one("\"U8\"", "[4]", "[0,4,4]"), "abcd"), "must hold 2 numbers", "t"},
      {"OffsetsFall", image(one("\"U8\"", "[4]", "[4,0]"), "abcd"), "out of order", "t"},
      {"OffsetsPastTheEnd", image(one("\"U8\"", "[4]", "[4,8]"), "abcd"), "leave the 4 bytes", "t"},
      {"OffsetsHuge", image(one("\"U8\"", "[4]", "[0,18446744073709551615]"), "abcd"), "leave the 4 bytes",
       "t"},
      {"OffsetTooLong", image(one("\"U8\"", "[4]", "[0,18446744073709551616]"), "abcd"),
       "non-negative integers", "t"},
      {"OffsetNegative", image(one("\"U8\"", "[4]", "[-4,0]"), "abcd"), "non-negative integers", "t"},
      {"Overlap", image("{" + half + R"(,"t":{"dtype":"U8","shape":[3],"data_offsets":[1,4]}})", "abcd"),
       "overlapping", "t"},
      {"SameBytesTwice", image("{" + half + R"(,"t":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})", "ab"),
       "overlapping", "t"},
      {"Gap", image("{" + half + R"(,"t":{"dtype":"U8","shape":[1],"data_offsets":[3,4]}})", "abcd"), "gap",
       "t"},
      {"GapAtTheStart", image(one("\"U8\"", "[3]", "[1,4]"), "abcd"), "gap", "t"},
      {"MetadataNotObject", image(R"({"__metadata__":[]})", ""), "__metadata__", "__metadata__"},
      {"MetadataNumber", image(R"({"__metadata__":{"k":1}})", ""), "expected a string for \"k\"", "k"},
      {"MetadataNested", image(R"({"__metadata__":{"k":{}}})", ""), "expected a string for \"k\"", "k"},
      {"DeepArray", image(R"({"t":{"shape":)" + deep_array, ""), "non-negative integers in shape", "t"},
      {"DeepArrayTensor", image(R"({"t":)" + deep_array, ""), "expected an object", "t"},
      {"DeepObject", image(deep_object, ""), "\"a\"", "a"},
  };
}

class BadSafetensors : public testing::TestWithParam<BadFile> {};

TEST_P(BadSafetensors, IsRefusedWithTheReason) {
  try {
    parse(GetParam().image);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_NE(std::string(error.what()).find(GetParam().message), std::string::npos) << error.what();
    EXPECT_EQ(error.argument(), GetParam().argument);
  }
}

INSTANTIATE_TEST_SUITE_P(Files, BadSafetensors, testing::ValuesIn(bad_files()),
                         [](const auto& file) { return file.param.name; });

TEST(Safetensors, EveryTruncationOfAGoodFileIsRefused) {
  File file;
  file.tensors["a"] = tensor(DType::fp32, {2}, {1, 2, 3, 4, 5, 6, 7, 8});
  file.tensors["b"] = tensor(DType::u8, {3}, {1, 2, 3});
  const std::string whole = serialize(file);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_THROW(parse(std::string_view(whole).substr(0, size)), Error) << size;
  }
}

TEST(Safetensors, RefusesToWriteWhatItCouldNotReadBack) {
  const auto message = [](const File& file) -> std::string {
    try {
      serialize(file);
    } catch (const Error& error) {
      return error.code() == ErrorCode::invalid_argument ? error.what() : "wrong code";
    }
    return "accepted";
  };
  File file;
  file.tensors["t"] = tensor(DType::fp32, {2}, {1, 2, 3});
  EXPECT_NE(message(file).find("\"t\": F32 [2] does not match its 3 bytes"), std::string::npos)
      << message(file);
  file.tensors["t"] = tensor(DType::u8, {-1}, {});
  EXPECT_NE(message(file).find("negative"), std::string::npos);
  file.tensors = {{"\xFF", tensor(DType::u8, {1}, {0})}};
  EXPECT_NE(message(file).find("UTF-8"), std::string::npos);
  file.tensors = {{"__metadata__", tensor(DType::u8, {1}, {0})}};
  EXPECT_NE(message(file).find("must not be named"), std::string::npos);
}

}  // namespace
}  // namespace mxjit::safetensors
