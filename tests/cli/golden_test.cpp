// Golden cases through the program: other people's bytes from problem.json and in.safetensors.
#include <cstdlib>
#include <filesystem>

#include "cli/tensor_file.hpp"
#include "cli/tool.hpp"

namespace mxjit::test {
namespace {

namespace fs = std::filesystem;

// The goldens' E4M3 NaN may carry a sign; ours never does.
std::string folded(const ReadFile& file, const std::string& name) {
  std::string bytes = file.bytes(name);
  if (file.dtype(name) == "F8_E4M3")
    for (char& byte : bytes)
      if (byte == '\xff') byte = '\x7f';
  return bytes;
}

using Golden = ToolTest;

TEST_F(Golden, SmallCasesOnTheCpuToTheByte) {
  const char* goldens = std::getenv("MXJIT_GOLDENS");
  if (goldens == nullptr) GTEST_SKIP() << "MXJIT_GOLDENS names no folder of golden files";
  std::set<std::string> ops;
  int cases = 0;
  for (const auto& folder : fs::directory_iterator(goldens)) {
    const fs::path problem = folder.path() / "problem.json", in = folder.path() / "in.safetensors";
    if (!fs::exists(problem) || !fs::exists(in) || fs::file_size(in) > 200'000) continue;
    const auto expect = nlohmann::json::parse(read(folder.path() / "expect.json"));
    const std::string op = nlohmann::json::parse(read(problem)).value("op", "");
    if (expect["compare"] != "bytes" || op == "composite") continue;
    SCOPED_TRACE(folder.path().filename().string());
    const Ran ran = tool({"run", problem.string(), in.string(), "out.safetensors", "--device", "cpu"});
    ASSERT_EQ(ran.status, 0) << ran.err;
    const ReadFile got(read("out.safetensors")), want(read(folder.path() / "expect.safetensors"));
    for (const auto& [name, entry] : want.header.items()) {
      if (name == "__metadata__") continue;
      EXPECT_EQ(got.shape(name), want.shape(name)) << name;
      EXPECT_TRUE(folded(got, name) == folded(want, name)) << name;
    }
    ops.insert(op);
    ++cases;
  }
  EXPECT_GT(cases, 20);
  EXPECT_TRUE(ops.contains("quantize") && ops.contains("pack_scales") && ops.contains("pad_groups"));
}

}  // namespace
}  // namespace mxjit::test
