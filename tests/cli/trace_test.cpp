// Traces: prewarm --trace, replay, the drill of a deployment, and a prewarm that was killed.
#include <sys/wait.h>

#include <cstdlib>
#include <regex>

#include "cli/tensor_file.hpp"
#include "cli/tool.hpp"

namespace mxjit::test {
namespace {

nlohmann::json gemm_problem(std::int64_t m, std::int64_t n, std::int64_t k) {
  const auto operand = [](std::int64_t rows, std::int64_t columns) {
    return nlohmann::json{
        {"dtype", "e4m3"}, {"shape", {rows, columns}}, {"scaling", {{"kind", "fp32"}, {"block", "row"}}}};
  };
  return {{"schema", 1}, {"op", "gemm"}, {"a", operand(m, k)}, {"b", operand(n, k)}};
}

class Traces : public ToolTest {
 protected:
  void SetUp() override {
    ToolTest::SetUp();
    const std::string row = quantize_problem(256, 512);
    // Repeated problems, in other words too, and an empty line.
    write("trace.jsonl", row + "\n" + gemm_problem(16, 256, 512).dump() + "\n\n" + row + "\n" +
                             nlohmann::json::parse(quantize_problem(100, 512)).dump() + "\n");
  }
  bool skipped() {
    why_ = why_no_nvrtc();
    return !why_.empty();
  }
  std::size_t entries(const std::string& root) const {
    std::size_t count = 0;
    std::error_code gone;
    for (std::filesystem::recursive_directory_iterator at(path(root), gone), end; !gone && at != end;
         at.increment(gone))
      count += at->path().extension() == ".kernel" ? 1 : 0;
    return count;
  }
  std::string why_;
};

TEST_F(Traces, PrewarmReadsATraceOnce) {
  const Ran ran = tool({"prewarm", "--trace", "trace.jsonl", "--arch", "sm_90a", "--dry-run", "--json"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  const auto table = ran.json()["table"];
  ASSERT_EQ(table.size(), 2U);  // both quantizations are served by one kernel
  EXPECT_EQ(table[0]["problems"].size(), 2U);
  const Ran both = tool({"prewarm", "--trace", "trace.jsonl", "trace.jsonl", "--arch", "sm_90a,sm_100a",
                         "--dry-run", "--json"});
  EXPECT_EQ(both.json()["kernels"], 4);
}

TEST_F(Traces, ABadLineIsNamedByItsNumber) {
  const std::string good = quantize_problem(256, 512);
  const std::vector<std::pair<std::string, std::string>> bad = {
      {good + "\n" + good.substr(0, 40) + "\n" + good, "line 2"},
      {good + "\n\n\n{\"schema\":1,\"op\":\"quantise\"}\n", "line 4"},
      {"[]\n", "line 1"},
      {good + good, "line 1"}};
  for (const auto& [text, line] : bad) {
    write("bad.jsonl", text);
    for (const std::vector<std::string>& args :
         {std::vector<std::string>{"prewarm", "--trace", "bad.jsonl", "--dry-run"},
          std::vector<std::string>{"replay", "bad.jsonl"}}) {
      const Ran ran = tool(args);
      EXPECT_EQ(ran.status, 2) << ran.err;
      EXPECT_NE(ran.err.find("bad.jsonl"), std::string::npos) << ran.err;
      EXPECT_NE(ran.err.find(line + ":"), std::string::npos) << ran.err;
    }
  }
  EXPECT_FALSE(exists(".cache"));
}

TEST_F(Traces, ReplayRefusesRangesAndEmptyTraces) {
  auto range = nlohmann::json::parse(quantize_problem(256, 512));
  range["input"]["shape"][0] = {{"min", 1}, {"max", 9}};
  write("range.jsonl", range.dump() + "\n");
  write("empty.jsonl", "\n\n");
  EXPECT_EQ(tool({"replay", "range.jsonl"}).status, 2);
  EXPECT_EQ(tool({"replay", "empty.jsonl"}).status, 2);
  EXPECT_EQ(tool({"prewarm", "--trace", "range.jsonl", "--dry-run"}).status, 0);
}

TEST_F(Traces, LoadWithoutAGpuIsAMissingPartBeforeAnythingIsCompiled) {
  if (has_gpu()) GTEST_SKIP() << "there is a GPU";
  const Ran ran = tool({"prewarm", "--trace", "trace.jsonl", "--load", "--cache", "root"});
  EXPECT_EQ(ran.status, 3) << ran.err;
  EXPECT_NE(ran.err.find("--load"), std::string::npos) << ran.err;
  EXPECT_FALSE(exists("root"));
}

TEST_F(Traces, ReplayOfAPrewarmedTraceCompilesNothing) {
  if (skipped()) GTEST_SKIP() << why_;
  const std::vector<std::string> replay = {"replay", "trace.jsonl", "--load", "--count",
                                           "100",    "--cache",     "root",   "--json"};
  const Ran cold = tool(replay, {.env = {{"MXJIT_COMPILE", "forbid"}}});
  EXPECT_EQ(cold.status, 1) << cold.err;
  EXPECT_NE(cold.err.find("prewarm"), std::string::npos) << cold.err;  // the line to run
  if (!has_gpu()) {
    const Ran compiling = tool({"replay", "trace.jsonl", "--cache", "other", "--json"});
    EXPECT_EQ(compiling.status, 1) << compiling.err;  // what the drill must not see
    EXPECT_EQ(compiling.json()["devices"][0]["compiled"], 2);
  }
  ASSERT_EQ(tool({"prewarm", "--trace", "trace.jsonl", "--cache", "root"}).status, 0);
  const Ran warm = tool(replay, {.env = {{"MXJIT_COMPILE", "forbid"}, {"MXJIT_NVRTC", "/nowhere"}}});
  ASSERT_EQ(warm.status, 0) << warm.err;
  const auto json = warm.json();
  EXPECT_EQ(json["problems"], 3);
  EXPECT_EQ(json["replayed"], 100);
  EXPECT_EQ(json["launched"], has_gpu());
  for (const auto& device : json["devices"]) {
    EXPECT_EQ(device["compiled"], 0);
    EXPECT_EQ(device["library_loads"], 0);
    EXPECT_EQ(device["function_loads"], 0);
  }
}

// tools/deployment_drill.sh: passes on a whole bundle, fails on one that lacks a kernel, and tells a machine
// with a compiler from one without.
TEST_F(Traces, TheDrillOfADeployment) {
  if (skipped()) GTEST_SKIP() << why_;
  const auto drill = [&](const std::string& bundle, const std::string& trace,
                         const std::string& program = MXJIT_TOOL) {
    const std::string command = "PATH=\"$(dirname '" MXJIT_TOOL "'):$PATH\" '" MXJIT_TESTS_DIR
                                "/../tools/deployment_drill.sh' '" +
                                program + "' '" + path(bundle).string() + "' '" + path(trace).string() +
                                "' >'" + path("drill.log").string() + "' 2>&1";
    return WEXITSTATUS(std::system(command.c_str()));
  };
  ASSERT_EQ(tool({"prewarm", "--trace", "trace.jsonl", "--cache", "root"}).status, 0);
  ASSERT_EQ(tool({"cache", "export", "whole.bundle", "--cache", "root"}).status, 0);
  EXPECT_EQ(drill("whole.bundle", "trace.jsonl"), 0) << read("drill.log");
  EXPECT_NE(read("drill.log").find("passed"), std::string::npos) << read("drill.log");
  EXPECT_EQ(drill("whole.bundle", "trace.jsonl", "mxjit"), 0) << read("drill.log");
  EXPECT_NE(read("drill.log").find("\"replayed\": 1000"), std::string::npos) << read("drill.log");
  auto dual = nlohmann::json::parse(quantize_problem(256, 512));
  dual["axes"] = {"row", "col"};
  write("more.jsonl", read("trace.jsonl") + dual.dump() + "\n");
  EXPECT_EQ(drill("whole.bundle", "more.jsonl"), 1) << read("drill.log");
  write("bad.bundle", "no bundle");
  EXPECT_EQ(drill("bad.bundle", "trace.jsonl"), 1) << read("drill.log");
}

// Killed after the second of six kernels: what was compiled stays, and the rest is all that is left to do.
TEST_F(Traces, AKilledPrewarmGoesOnWhereItWas) {
  if (skipped()) GTEST_SKIP() << why_;
  std::string trace;
  for (const char* dtype : {"bf16", "fp16", "fp32"})
    for (const char* format : {"e4m3", "e5m2"}) {
      auto problem = nlohmann::json::parse(quantize_problem(256, 512));
      problem["input"]["dtype"] = dtype;
      problem["format"] = format;
      trace += problem.dump() + "\n";
    }
  write("six.jsonl", trace);
  const std::vector<std::string> prewarm = {"prewarm", "--trace", "six.jsonl", "--arch", "sm_90a",
                                            "-j",      "1",       "--cache",   "root",   "--json"};
  const Ran killed = tool(prewarm, {.kill_when = [&] { return entries("root") >= 2; }});
  EXPECT_EQ(killed.status, 128 + 9);
  const std::size_t done = entries("root");
  ASSERT_GE(done, 2U);
  ASSERT_LT(done, 6U);
  const Ran rest = tool(prewarm);
  ASSERT_EQ(rest.status, 0) << rest.err;
  EXPECT_EQ(rest.json()["kernels"], 6);
  EXPECT_EQ(rest.json()["hits"], done);
  EXPECT_EQ(rest.json()["compiled"], 6 - done);
  EXPECT_EQ(tool({"cache", "verify", "--cache", "root"}).status, 0);
}

TEST_F(Traces, ATerminalSeesRateAndRemainingTime) {
  if (skipped()) GTEST_SKIP() << why_;
  auto range = gemm_problem(1, 4096, 512);  // a kernel for each tile: some seconds
  range["a"]["shape"][0] = {{"min", 1}, {"max", 60000}};
  write("range.json", range.dump());
  const std::vector<std::string> args = {"prewarm", "--problems", "range.json", "row.json", "--arch",
                                         "sm_90a",  "-j",         "1",          "--cache",  "root"};
  write("row.json", quantize_problem(256, 512));
  const Ran ran = tool(args, {.terminal = true});
  ASSERT_EQ(ran.status, 0) << ran.err;
  const std::regex line(R"(compiling: [1-9]\d* of \d+, \d+\.\d/s, (\d+ ms|\d+\.\d s) left)");
  EXPECT_TRUE(std::regex_search(ran.err, line)) << ran.err;
  EXPECT_TRUE(ran.err.ends_with("\r\x1b[K")) << ran.err;  // wiped
  EXPECT_EQ(tool(args).err, "");                          // and nothing where it is none
}

TEST_F(Traces, PrewarmTellsHowManyItCompilesAtATime) {
  if (skipped()) GTEST_SKIP() << why_;
  const auto jobs = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"prewarm", "--trace", "trace.jsonl", "--cache", "root", "--json"});
    return tool(more).json()["jobs"].get<int>();
  };
  EXPECT_EQ(jobs({"-j", "3"}), 3);
  EXPECT_GE(jobs({}), 1);
}

}  // namespace
}  // namespace mxjit::test
