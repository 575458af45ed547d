// mxjit run: results, and the life of its output file.
#include <fstream>

#include "cli/tensor_file.hpp"
#include "cli/tool.hpp"

namespace mxjit::test {
namespace {

class Run : public ToolTest {
 protected:
  // Two rows: ones, and halves. The largest magnitude's scale is the power of two at or above amax / 448:
  // 2^-8 (code 119) and 2^-9 (code 118), so that every element is 256: 0x78.
  void SetUp() override {
    ToolTest::SetUp();
    write("problem.json", quantize_problem(2, 32));
    write("in.safetensors",
          tensor_file({{"x", "BF16", {2, 32}, repeat16(bf16_one, 32) + repeat16(0x3f00, 32)}}));
  }
  const std::vector<std::string> args_ = {"run", "problem.json", "in.safetensors", "out.safetensors"};
  std::vector<std::string> on_cpu(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> args = args_;
    args.insert(args.end(), {"--device", "cpu"});
    args.insert(args.end(), more.begin(), more.end());
    return args;
  }
};

TEST_F(Run, WritesTheOutputsAndTellsTheDevice) {
  const Ran ran = tool(on_cpu({"--json"}));
  ASSERT_EQ(ran.status, 0) << ran.err;
  const auto json = ran.json();
  EXPECT_EQ(json["device"], "cpu");
  EXPECT_EQ(json["compiled"], 0);
  EXPECT_EQ(json["hits"], 0);
  EXPECT_EQ(json["statistics"]["compiles"], 0);
  EXPECT_EQ(json["statistics"]["layers"].size(), 0U);
  EXPECT_EQ(json["statistics"]["load_seconds"], 0.0);
  EXPECT_EQ(json["outputs"]["q_row"]["dtype"], "e4m3");
  EXPECT_EQ(json["outputs"]["s_row"]["shape"], (std::vector<int>{2, 1}));
  EXPECT_NE(ran.err.find("cpu"), std::string::npos);

  const ReadFile file(read("out.safetensors"));
  EXPECT_EQ(file.dtype("q_row"), "F8_E4M3");
  EXPECT_EQ(file.bytes("q_row"), std::string(64, '\x78'));
  EXPECT_EQ(file.dtype("s_row"), "F8_E8M0");
  EXPECT_EQ(file.bytes("s_row"), "\x77\x76");
}

TEST_F(Run, AutoRunsOnTheGpuOrTheCpu) {
  const Ran ran = tool({"run", "problem.json", "in.safetensors", "out.safetensors", "--json"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  EXPECT_TRUE(ran.json()["device"].get<std::string>().starts_with(has_gpu() ? "cuda" : "cpu"));
  EXPECT_EQ(ReadFile(read("out.safetensors")).bytes("q_row"), std::string(64, '\x78'));
}

TEST_F(Run, WithoutAGpuDeviceCudaIsAMissingPart) {
  if (has_gpu()) GTEST_SKIP() << "there is a GPU here";
  const Ran ran = tool({"run", "problem.json", "in.safetensors", "out.safetensors", "--device", "cuda"});
  EXPECT_EQ(ran.status, 3) << ran.err;
  EXPECT_FALSE(exists("out.safetensors"));
}

TEST_F(Run, ReplacesAnOlderOutput) {
  write("out.safetensors", "old");
  ASSERT_EQ(tool(on_cpu()).status, 0);
  EXPECT_EQ(ReadFile(read("out.safetensors")).bytes("s_row"), "\x77\x76");
}

TEST_F(Run, NotesTensorsThatTheProblemDoesNotRead) {
  write("in.safetensors", tensor_file({{"x", "BF16", {2, 32}, repeat16(bf16_one, 64)},
                                       {"bias", "F32", {1}, std::string(4, '\0')}}));
  const Ran ran = tool(on_cpu());
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_NE(ran.err.find("bias"), std::string::npos);
  EXPECT_FALSE(ReadFile(read("out.safetensors")).header.contains("bias"));
}

TEST_F(Run, NanBitPatternsAreValues) {
  write("in.safetensors",
        tensor_file({{"x", "BF16", {2, 32}, repeat16(0x7fc1, 32) + repeat16(bf16_one, 32)}}));
  ASSERT_EQ(tool(on_cpu()).status, 0);
  const ReadFile file(read("out.safetensors"));
  EXPECT_EQ(file.bytes("q_row"), std::string(32, '\x7f') + std::string(32, '\x78'));
  EXPECT_EQ(file.bytes("s_row"), "\xff\x77");
}

TEST_F(Run, ZeroExtents) {
  for (const auto& [rows, cols] : std::vector<std::pair<int, int>>{{0, 32}, {2, 0}, {0, 0}}) {
    write("problem.json", quantize_problem(rows, cols));
    write("in.safetensors", tensor_file({{"x", "BF16", {rows, cols}, ""}}));
    const Ran ran = tool(on_cpu());
    EXPECT_EQ(ran.status, 0) << rows << "x" << cols << ": " << ran.err;
    EXPECT_EQ(ReadFile(read("out.safetensors")).shape("q_row"), (std::vector<std::int64_t>{rows, cols}));
  }
}

TEST_F(Run, OutputEqualToAnInputIsRefused) {
  std::filesystem::create_hard_link(path("in.safetensors"), path("hard.safetensors"));
  std::filesystem::create_symlink("in.safetensors", path("soft.safetensors"));
  std::filesystem::create_directory(path("sub"));
  const std::string before = read("in.safetensors"), problem = read("problem.json");
  for (const std::string out : {"in.safetensors", "./in.safetensors", "sub/../in.safetensors",
                                "hard.safetensors", "soft.safetensors", "problem.json"}) {
    const Ran ran = tool({"run", "problem.json", "in.safetensors", out, "--device", "cpu"});
    EXPECT_EQ(ran.status, 2) << out << ran.err;
    EXPECT_NE(ran.err.find("OUT"), std::string::npos) << ran.err;
  }
  EXPECT_EQ(read("in.safetensors"), before);
  EXPECT_EQ(read("problem.json"), problem);
  EXPECT_TRUE(std::filesystem::is_symlink(path("soft.safetensors")));
}

TEST_F(Run, OutputThatIsNoFileIsRefused) {
  std::filesystem::create_directory(path("folder"));
  for (const std::string out : {"folder", "/dev/null", "no-such-folder/out.safetensors", ""}) {
    const Ran ran = tool({"run", "problem.json", "in.safetensors", out, "--device", "cpu"});
    EXPECT_EQ(ran.status, 2) << out << ran.err;
  }
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
}

TEST_F(Run, AFullDiskKeepsTheOldOutput) {
  write("out.safetensors", "old");
  const auto before = names();
  const Ran ran = tool(on_cpu({"--json"}), {.largest_file = 100});
  EXPECT_EQ(ran.status, 1) << ran.err;
  EXPECT_EQ(read("out.safetensors"), "old");
  EXPECT_EQ(names(), before);
}

TEST_F(Run, AnOpWithoutAnExecutionPathIsAMissingPart) {
  write("problem.json",
        R"({"schema":1,"op":"moe","tokens":2,"hidden":32,"intermediate":32,"experts":2,"top_k":1,
    "weights":{"scaling":"mx","block":32},"activations":{"scaling":"mx","block":32},
    "activation":{"kind":"swiglu"}})");
  const Ran ran = tool(on_cpu());
  EXPECT_TRUE(ran.status == 2 || ran.status == 3) << ran.err;
  EXPECT_FALSE(exists("out.safetensors"));
}

}  // namespace
}  // namespace mxjit::test
