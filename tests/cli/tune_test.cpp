// tune, and what the other commands make of its table. Measuring needs a GPU; the rest does not.
#include <fstream>

#include "cli/tool.hpp"

namespace mxjit::test {
namespace {

const char* const tuned_problem =
    R"({"schema": 1, "op": "gemm", "accumulation": "fast",
        "a": {"dtype": "e4m3", "shape": [512, 5120], "scaling": {"kind": "fp32", "block": "row"}},
        "b": {"dtype": "e4m3", "shape": [5120, 5120], "scaling": {"kind": "fp32", "block": "row"}}})";

std::string with_rows(const nlohmann::json& rows) {
  auto problem = nlohmann::json::parse(tuned_problem);
  problem["a"]["shape"][0] = rows;
  return problem.dump();
}

std::string batched(const nlohmann::json& count) {
  auto problem = nlohmann::json::parse(tuned_problem);
  for (const char* operand : {"a", "b"}) {
    nlohmann::json& shape = problem[operand]["shape"];
    shape.insert(shape.begin(), count);
  }
  return problem.dump();
}

class Tune : public ToolTest {
 protected:
  void SetUp() override {
    ToolTest::SetUp();
    write("gemm.json", tuned_problem);
    write("range.json", with_rows({{"min", 1}, {"max", 600}}));
    write("bf16.json", R"({"schema": 1, "op": "gemm", "a": {"dtype": "bf16", "shape": [16, 64]},
                           "b": {"dtype": "bf16", "shape": [32, 64]}})");
  }
  // A table that gives the problem another tile than the model does.
  void write_table(const std::string& root, const std::string& tile) {
    std::filesystem::create_directories(path(root));
    const nlohmann::json entry = {
        {"problem", nlohmann::json::parse(tuned_problem)}, {"tile", tile}, {"us", 41.5}, {"model_us", 43.25}};
    const nlohmann::json device = {{"profile", "h200"},
                                   {"sm_count", 132},
                                   {"gpu", "NVIDIA H200"},
                                   {"gemm", nlohmann::json::array({entry})}};
    write(root + "/tuning.json",
          nlohmann::json{{"format", 1}, {"devices", nlohmann::json::array({device})}}.dump());
  }
};

TEST_F(Tune, DryRunListsCandidatesWithoutAGpu) {
  const Ran ran = tool({"tune", "gemm.json", "bf16.json", "--dry-run", "--json", "--cache", "root"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  const nlohmann::json json = ran.json();
  EXPECT_EQ(json["problems"], 1);
  ASSERT_EQ(json["jobs"].size(), 1U);
  const nlohmann::json& job = json["jobs"][0];
  EXPECT_EQ(job["shape"], nlohmann::json({512, 5120, 5120}));
  EXPECT_GE(job["tiles"].size(), 3U);
  EXPECT_NE(std::find(job["tiles"].begin(), job["tiles"].end(), job["model"]), job["tiles"].end());
  EXPECT_EQ(json["kernels"], job["tiles"].size());
  EXPECT_EQ(json["cached"], 0);
  ASSERT_EQ(json["skipped"].size(), 1U);
  EXPECT_NE(json["skipped"][0]["reason"].get<std::string>().find("one configuration"), std::string::npos);
  EXPECT_FALSE(exists("root"));
  const Ran text = tool({"tune", "gemm.json", "--dry-run", "--cache", "root"});
  EXPECT_EQ(text.status, 0) << text.err;
  EXPECT_NE(text.out.find("512x5120x5120"), std::string::npos) << text.out;
}

TEST_F(Tune, RangesOfRowsAreMeasuredAtSomeOfThem) {
  const auto rows = [&](std::vector<std::string> args) {
    args.insert(args.begin(), {"tune", "range.json", "--dry-run", "--json"});
    std::vector<int> all;
    const nlohmann::json json = tool(args).json();
    for (const nlohmann::json& job : json["jobs"]) all.push_back(job["shape"][0]);
    return all;
  };
  // Those of one class count once: 1 to 16, and 600 with what has as many rows of tiles.
  EXPECT_EQ(rows({}), (std::vector<int>{1, 32, 64, 128, 256, 512, 600}));
  EXPECT_EQ(rows({"--rows", "48,500,9000"}), (std::vector<int>{48, 500}));
}

// The Hopper kernel takes the matrices of a batch one by one, so one is measured, and speaks for any number.
TEST_F(Tune, OfABatchOneMatrixIsMeasured) {
  write("three.json", batched(3));
  write("some.json", batched({{"min", 0}, {"max", 8}}));
  write("none.json", batched(0));
  const auto plan = [&](std::vector<std::string> files) {
    files.insert(files.begin(), {"tune", "--dry-run", "--json"});
    return tool(files).json();
  };
  for (const char* file : {"three.json", "some.json"}) {
    const nlohmann::json json = plan({file});
    ASSERT_EQ(json["jobs"].size(), 1U) << file;
    EXPECT_EQ(json["jobs"][0]["shape"], nlohmann::json({512, 5120, 5120}));
    EXPECT_EQ(json["skipped"], nlohmann::json::array());
  }
  EXPECT_EQ(plan({"gemm.json", "three.json", "some.json"})["jobs"].size(), 1U);
  const nlohmann::json of_none = plan({"none.json"});
  EXPECT_EQ(of_none["jobs"], nlohmann::json::array());
  EXPECT_EQ(of_none["skipped"][0]["reason"], "an extent is 0");
}

TEST_F(Tune, WithoutAGpuItSaysSo) {
  if (has_gpu()) GTEST_SKIP() << "there is a GPU";
  const Ran ran = tool({"tune", "gemm.json", "--cache", "root"});
  EXPECT_EQ(ran.status, 3);
  EXPECT_NE(ran.err.find("GPU"), std::string::npos) << ran.err;
  EXPECT_NE(ran.err.find("--dry-run"), std::string::npos) << ran.err;
  EXPECT_FALSE(exists("root"));
}

TEST_F(Tune, BadUsageIsNamed) {
  EXPECT_EQ(tool({"tune"}).status, 2);
  EXPECT_EQ(tool({"tune", "nowhere.json", "--dry-run"}).status, 2);
  EXPECT_EQ(tool({"tune", "gemm.json", "--rows", "0", "--dry-run"}).status, 2);
  EXPECT_EQ(tool({"tune", "gemm.json", "--margin", "-1", "--dry-run"}).status, 2);
  EXPECT_NE(tool({"tune", "--help"}).out.find("--dry-run"), std::string::npos);
}

TEST_F(Tune, ExplainSaysWhoChose) {
  const auto tile = [&] {
    const Ran ran = tool({"explain", "gemm.json", "--arch", "sm_90a", "--cache", "root", "--json"});
    EXPECT_EQ(ran.status, 0) << ran.err;
    return ran.json()["kernels"][0];
  };
  const nlohmann::json of_model = tile();
  EXPECT_EQ(of_model["tile"], nlohmann::json({{"by", "model"}}));
  write_table("root", "128x96");
  const nlohmann::json of_table = tile();
  EXPECT_EQ(of_table["tile"]["by"], "table");
  EXPECT_EQ(of_table["tile"]["us"], 41.5);
  EXPECT_EQ(of_table["tile"]["model_us"], 43.25);
  EXPECT_EQ(of_table["tile"]["gpu"], "NVIDIA H200");
  EXPECT_NE(of_table["key"], of_model["key"]);
  const Ran text = tool({"explain", "gemm.json", "--arch", "sm_90a", "--cache", "root"});
  EXPECT_NE(text.out.find("tuning table: 41.500 us"), std::string::npos) << text.out;
  write("root/tuning.json", "{");
  const Ran broken = tool({"explain", "gemm.json", "--arch", "sm_90a", "--cache", "root", "--json"});
  EXPECT_EQ(broken.status, 0);
  EXPECT_EQ(broken.json()["kernels"][0]["key"], of_model["key"]);
  EXPECT_NE(broken.err.find("tuning.json"), std::string::npos) << broken.err;
}

TEST_F(Tune, EmitPrintsTheTileOfTheTable) {
  write_table("root", "128x96");
  const std::string out = tool({"emit", "gemm.json", "--arch", "sm_90a", "--cache", "root"}).out;
  EXPECT_NE(out.find("block_n = 96;"), std::string::npos) << out;
  EXPECT_EQ(tool({"emit", "gemm.json", "--arch", "sm_90a", "--cache", "other"}).out.find("block_n = 96;"),
            std::string::npos);
}

// With the table and without it, calls find their kernels.
TEST_F(Tune, PrewarmCompilesForCallsThatFindTheTableOrNot) {
  const auto keys = [&](const std::string& problem, const std::string& root) {
    std::set<std::string> all;
    const Ran ran =
        tool({"prewarm", "--problems", problem, "--arch", "sm_90a", "--cache", root, "--dry-run", "--json"});
    const nlohmann::json json = ran.json();
    for (const nlohmann::json& kernel : json["table"]) all.insert(kernel["key"].get<std::string>());
    return all;
  };
  const auto key_of = [&](const std::string& root) {
    return tool({"explain", "gemm.json", "--arch", "sm_90a", "--cache", root, "--json"})
        .json()["key"]
        .get<std::string>();
  };
  write_table("root", "128x96");
  for (const char* problem : {"gemm.json", "range.json"}) {
    const std::set<std::string> with = keys(problem, "root"), without = keys(problem, "other");
    EXPECT_TRUE(with.contains(key_of("root"))) << problem;
    EXPECT_TRUE(with.contains(key_of("other"))) << problem;
    EXPECT_TRUE(std::includes(with.begin(), with.end(), without.begin(), without.end())) << problem;
  }
  EXPECT_EQ(keys("gemm.json", "root").size(), 2U);
}

TEST_F(Tune, BundlesAndImportsCarryTheTable) {
  write_table("root", "128x96");
  const Ran exported = tool({"cache", "export", "b.bundle", "--cache", "root", "--json"});
  ASSERT_EQ(exported.status, 0) << exported.err;
  EXPECT_EQ(exported.json()["tuned"], 1);
  const Ran imported = tool({"cache", "import", "b.bundle", "--cache", "other", "--json"});
  ASSERT_EQ(imported.status, 0) << imported.err;
  EXPECT_EQ(imported.json()["tuned"], 1);
  const auto by = [&](const How& how, const std::string& root) {
    return tool({"explain", "gemm.json", "--arch", "sm_90a", "--cache", root, "--json"}, how)
        .json()["kernels"][0]["tile"]["by"];
  };
  EXPECT_EQ(by({}, "other"), "table");
  EXPECT_EQ(by({}, "third"), "model");
  EXPECT_EQ(by({.env = {{"MXJIT_BUNDLE_PATH", path("b.bundle").string()}}}, "third"), "table");
}

// The real thing, small: what is kept is used.
TEST_F(Tune, MeasuresOnTheGpu) {
  if (!has_gpu()) GTEST_SKIP() << "no GPU here";
  if (const std::string why = why_no_nvrtc(); !why.empty()) GTEST_SKIP() << why;
  // Any winner at all is kept, so that there is something to look at.
  const Ran ran =
      tool({"tune", "range.json", "--rows", "16,128,512", "--margin", "0", "--cache", "root", "--json"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  const nlohmann::json json = ran.json();
  ASSERT_EQ(json["results"].size(), 3U);
  EXPECT_EQ(json["failed"], 0);
  int kept = 0;
  for (const nlohmann::json& result : json["results"]) {
    EXPECT_GT(result["model"]["us"], 0.0);
    EXPECT_LE(result["best"]["us"], result["model"]["us"]);
    kept += result["kept"] ? 1 : 0;
    const int rows = result["shape"][0];
    write("one.json", with_rows(rows));
    const Ran explained = tool({"explain", "one.json", "--cache", "root", "--json"});
    const nlohmann::json kernel = explained.json()["kernels"][0];
    EXPECT_EQ(kernel["tile"]["by"], result["kept"] ? "table" : "model");
    EXPECT_EQ(kernel["outcome"], "hit");
  }
  EXPECT_EQ(json["kept"], kept);
  write("batch.json", batched({{"min", 0}, {"max", 8}}));
  const Ran of_batch = tool({"tune", "batch.json", "--margin", "0", "--cache", "root", "--json"});
  EXPECT_EQ(of_batch.json()["failed"], 0) << of_batch.err;
  const Ran again =
      tool({"tune", "range.json", "--rows", "16,128,512", "--margin", "100", "--cache", "root", "--json"});
  EXPECT_EQ(again.json()["compiled"], 0);
  EXPECT_EQ(again.json()["kept"], 0);  // nothing is twice as fast, and earlier winners are forgotten
  EXPECT_EQ(tool({"explain", "gemm.json", "--cache", "root", "--json"}).json()["kernels"][0]["tile"]["by"],
            "model");
}

}  // namespace
}  // namespace mxjit::test
