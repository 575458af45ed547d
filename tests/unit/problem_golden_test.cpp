// Every golden problem file parses, round-trips, and declares the tensors that its files hold.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cache/support.hpp"
#include "problem/problem.hpp"

namespace mxjit::problem {
namespace {

namespace fs = std::filesystem;

// The header of a safetensors file: 8 bytes of length, then JSON.
nlohmann::json read_header(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  unsigned char prefix[8] = {};
  file.read(reinterpret_cast<char*>(prefix), 8);
  std::size_t length = 0;
  for (int i = 7; i >= 0; --i) length = length * 256 + prefix[i];
  std::string text(length, '\0');
  file.read(text.data(), static_cast<std::streamsize>(length));
  nlohmann::json header = nlohmann::json::parse(text);
  header.erase("__metadata__");
  return header;
}

std::string_view file_dtype(DType dtype) {
  switch (dtype) {
    case DType::bf16:
      return "BF16";
    case DType::fp16:
      return "F16";
    case DType::fp32:
      return "F32";
    case DType::e4m3:
      return "F8_E4M3";
    case DType::e5m2:
      return "F8_E5M2";
    case DType::e8m0:
      return "F8_E8M0";
    case DType::u8:
      return "U8";
    case DType::i32:
      return "I32";
    default:
      return "other";
  }
}

void expect_same(const nlohmann::json& header, const std::vector<TensorDecl>& decls, bool outputs) {
  std::size_t declared = 0;
  for (const TensorDecl& decl : decls) {
    if (decl.output != outputs || decl.optional) continue;
    ++declared;
    ASSERT_TRUE(header.contains(decl.name)) << decl.name;
    const nlohmann::json& entry = header[decl.name];
    EXPECT_EQ(entry["shape"].get<std::vector<std::int64_t>>(), decl.shape) << decl.name;
    if (decl.name == "d") continue;  // products are expected in a wider type
    const std::string dtype = entry["dtype"];
    const bool also = std::any_of(decl.also_dtypes.begin(), decl.also_dtypes.end(),
                                  [&](DType other) { return dtype == file_dtype(other); });
    EXPECT_TRUE(also || dtype == file_dtype(decl.dtype)) << decl.name << " is " << dtype;
  }
  EXPECT_EQ(header.size(), declared) << header.dump();
}

TEST(ProblemGolden, FilesParseRoundTripAndDeclareTheirTensors) {
  const char* root = std::getenv("MXJIT_GOLDENS");
  if (root == nullptr) GTEST_SKIP() << "MXJIT_GOLDENS does not name the folder of golden cases";
  std::size_t cases = 0;
  std::size_t composites = 0;
  for (const auto& entry : fs::directory_iterator(root)) {
    const fs::path folder = entry.path();
    if (!fs::exists(folder / "problem.json")) continue;
    SCOPED_TRACE(folder.filename().string());
    ++cases;
    const std::string text = test::read_bytes(folder / "problem.json");
    if (nlohmann::json::parse(text)["op"] == "composite") {
      ++composites;
      continue;
    }
    const Problem problem = parse(text);
    const std::string printed = print(problem);
    EXPECT_EQ(parse(printed), problem);
    EXPECT_EQ(print(parse(printed)), printed);
    const std::vector<TensorDecl> decls = tensors(problem);
    expect_same(read_header(folder / "in.safetensors"), decls, false);
    expect_same(read_header(folder / "expect.safetensors"), decls, true);
  }
  EXPECT_GE(cases, 129U);
  EXPECT_LT(composites * 10, cases);
}

}  // namespace
}  // namespace mxjit::problem
