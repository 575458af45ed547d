// prewarm, emit, explain and cache: kernels without a GPU.
#include <fstream>

#include "cli/tensor_file.hpp"
#include "cli/tool.hpp"

namespace mxjit::test {
namespace {

// A quantize problem with blocks down the columns too, which is another kernel.
std::string dual_problem() {
  auto problem = nlohmann::json::parse(quantize_problem(256, 512));
  problem["axes"] = {"row", "col"};
  return problem.dump();
}

const char* const moe_problem =
    R"({"schema":1,"op":"moe","tokens":16,"hidden":256,"intermediate":128,"experts":4,"top_k":2,
        "local_experts":[0,4],"weights":{"scaling":"mx","block":32},"activations":{"scaling":"mx","block":32},
        "activation":{"kind":"swiglu"},"routing_weight_on":"output","d":{"dtype":"bf16"}})";

class Kernels : public ToolTest {
 protected:
  void SetUp() override {
    ToolTest::SetUp();
    write("row.json", quantize_problem(256, 512));
    write("dual.json", dual_problem());
    write("moe.json", moe_problem);
  }
  // Tests that compile call this first.
  bool skipped() {
    why_ = why_no_nvrtc();
    return !why_.empty();
  }
  Ran on_root(std::vector<std::string> args, const How& how = {}) {
    args.insert(args.end(), {"--cache", "root", "--json"});
    return tool(args, how);
  }
  std::string why_;
};

TEST_F(Kernels, EmitPrintsASourceAPersonCanRead) {
  const Ran ran = tool({"emit", "row.json", "--arch", "sm_90a"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  EXPECT_NE(ran.out.find("constexpr"), std::string::npos);
  EXPECT_NE(ran.out.find("#include"), std::string::npos);
  EXPECT_LT(std::count(ran.out.begin(), ran.out.end(), '\n'), 80);
}

TEST_F(Kernels, EmitDescriptorIsCanonicalJson) {
  const Ran ran = tool({"emit", "row.json", "--arch", "sm_90a", "--descriptor"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(ran.out, ran.json().dump() + "\n");  // this library sorts keys and prints no spaces
  EXPECT_NE(ran.out.find("sm_90a"), std::string::npos);
}

TEST_F(Kernels, EmitKnowsTargetsAndRefusesOthers) {
  const std::string hopper = tool({"emit", "row.json", "--arch", "sm_90a", "--descriptor"}).out;
  EXPECT_NE(tool({"emit", "row.json", "--arch", "sm_100a", "--descriptor"}).out, hopper);
  const Ran ran = tool({"emit", "row.json", "--arch", "sm_42"});
  EXPECT_EQ(ran.status, 2);
  EXPECT_NE(ran.err.find("sm_90a"), std::string::npos) << ran.err;
}

TEST_F(Kernels, EmitPtxAndCubin) {
  if (skipped()) GTEST_SKIP() << why_;
  const Ran ptx = tool({"emit", "row.json", "--arch", "sm_90a", "--ptx"});
  ASSERT_EQ(ptx.status, 0) << ptx.err;
  EXPECT_NE(ptx.out.find(".target sm_90a"), std::string::npos);
  const Ran cubin =
      tool({"emit", "row.json", "--arch", "sm_90a", "--cubin", "kernel.cubin", "--cache", "root"});
  ASSERT_EQ(cubin.status, 0) << cubin.err;
  EXPECT_TRUE(read("kernel.cubin")
                  .starts_with("\x7f"
                               "ELF"));
  const std::string problem = read("row.json");
  EXPECT_EQ(tool({"emit", "row.json", "--cubin", "./row.json"}).status, 2);
  EXPECT_EQ(read("row.json"), problem);
}

TEST_F(Kernels, AnOpWithoutKernelsIsAMissingPart) {
  for (const char* command : {"emit", "explain"}) {
    const Ran ran = tool({command, "moe.json"});
    EXPECT_EQ(ran.status, 3) << ran.err;
    EXPECT_TRUE(ran.err.starts_with("mxjit")) << ran.err;
  }
}

TEST_F(Kernels, DryRunCompilesNothing) {
  const Ran ran = tool({"prewarm", "--problems", "row.json", "dual.json", "moe.json", "--arch",
                        "sm_90a,sm_100a", "--dry-run", "--cache", "root", "--json"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  const auto json = ran.json();
  EXPECT_EQ(json["kernels"], json["table"].size());
  EXPECT_EQ(json["cached"], 0);
  ASSERT_EQ(json["unsupported"].size(), 1U);
  EXPECT_EQ(json["unsupported"][0]["targets"], (std::vector<std::string>{"sm_90a", "sm_100a"}));
  std::set<std::string> keys;
  for (const auto& row : json["table"]) keys.insert(row["key"].get<std::string>());
  EXPECT_EQ(keys.size(), json["table"].size());
  EXPECT_FALSE(exists("root"));
  const Ran text =
      tool({"prewarm", "--problems", "row.json", "--arch", "sm_90a", "--dry-run", "--cache", "root"});
  EXPECT_NE(text.out.find("1 to compile"), std::string::npos) << text.out;
}

TEST_F(Kernels, ASecondPrewarmCompilesNothing) {
  if (skipped()) GTEST_SKIP() << why_;
  const std::vector<std::string> args = {"prewarm",  "--problems", "row.json", "dual.json", "row.json",
                                         "moe.json", "--arch",     "sm_90a",   "-j",        "2"};
  const Ran first = on_root(args);
  ASSERT_EQ(first.status, 0) << first.err;
  auto json = first.json();
  const int kernels = json["kernels"];
  EXPECT_GE(kernels, 2);
  EXPECT_EQ(json["compiled"], kernels);
  EXPECT_EQ(json["hits"], 0);
  EXPECT_EQ(json["failed"], 0);
  EXPECT_EQ(json["spilled"], 0);
  EXPECT_EQ(json["unsupported"].size(), 1U);
  EXPECT_GT(json["bytes"], 0);
  EXPECT_GT(json["seconds"], 0);
  EXPECT_EQ(json["statistics"]["compiles"], kernels);
  EXPECT_EQ(json["statistics"]["publishes"], kernels);
  EXPECT_GT(json["statistics"]["compile_seconds"], 0.0);

  // Neither a compiler nor leave to compile is needed any more.
  for (const How& how : {How{}, How{.env = {{"MXJIT_COMPILE", "forbid"}}}}) {
    const Ran second = on_root(args, how);
    ASSERT_EQ(second.status, 0) << second.err;
    EXPECT_EQ(second.json()["compiled"], 0);
    EXPECT_EQ(second.json()["hits"], kernels);
    EXPECT_EQ(second.json()["statistics"]["root_hits"], kernels);
    EXPECT_EQ(second.json()["statistics"]["compile_seconds"], 0.0);
  }
  const auto stats = on_root({"cache", "stats"}).json();
  EXPECT_EQ(stats["entries"], kernels);
  EXPECT_EQ(stats["bad"].size(), 0U);
  EXPECT_EQ(on_root({"cache", "ls"}).json()["entries"].size(), static_cast<std::size_t>(kernels));
  EXPECT_EQ(on_root({"cache", "verify"}).status, 0);
}

TEST_F(Kernels, ExplainTellsHitsMissesAndTheNearestEntry) {
  if (skipped()) GTEST_SKIP() << why_;
  const Ran cold = on_root({"explain", "row.json", "--arch", "sm_90a"});
  ASSERT_EQ(cold.status, 0) << cold.err;
  EXPECT_EQ(cold.json()["outcome"], "miss");
  EXPECT_TRUE(cold.json()["nearest"].is_null());
  EXPECT_EQ(cold.json()["key"].get<std::string>().size(), 64U);

  ASSERT_EQ(on_root({"prewarm", "--problems", "row.json", "--arch", "sm_90a"}).status, 0);
  const auto warm = on_root({"explain", "row.json", "--arch", "sm_90a"}).json();
  EXPECT_EQ(warm["outcome"], "hit");
  EXPECT_EQ(warm["key"], cold.json()["key"]);
  EXPECT_FALSE(warm["layer"].is_null());

  const auto other = on_root({"explain", "dual.json", "--arch", "sm_90a"}).json();
  EXPECT_EQ(other["outcome"], "miss");
  ASSERT_FALSE(other["nearest"].is_null());
  EXPECT_EQ(other["nearest"]["key"], warm["key"]);
  EXPECT_FALSE(other["nearest"]["differs"].empty());
}

TEST_F(Kernels, VerifyFindsADamagedEntry) {
  if (skipped()) GTEST_SKIP() << why_;
  ASSERT_EQ(on_root({"prewarm", "--problems", "row.json", "--arch", "sm_90a"}).status, 0);
  bool damaged = false;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path("root")))
    if (entry.is_regular_file() && entry.file_size() > 1000) {
      std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
      file.seekg(900);
      const char byte = static_cast<char>(file.get());
      file.seekp(900);
      file.put(static_cast<char>(byte ^ 1));
      damaged = true;
    }
  ASSERT_TRUE(damaged);
  const Ran ran = on_root({"cache", "verify"});
  EXPECT_EQ(ran.status, 1) << ran.err;
  EXPECT_EQ(ran.json()["bad"].size(), 1U);
  // The next prewarm rebuilds it.
  EXPECT_EQ(on_root({"prewarm", "--problems", "row.json", "--arch", "sm_90a"}).json()["compiled"], 1);
  EXPECT_EQ(on_root({"cache", "verify"}).status, 0);
}

TEST_F(Kernels, BundlesServeAnotherRoot) {
  if (skipped()) GTEST_SKIP() << why_;
  ASSERT_EQ(on_root({"prewarm", "--problems", "row.json", "--arch", "sm_90a"}).status, 0);
  const Ran exported = on_root({"cache", "export", "kernels.bundle"});
  ASSERT_EQ(exported.status, 0) << exported.err;
  EXPECT_EQ(exported.json()["entries"], 1);

  // In place, without a compiler.
  const How forbidden{
      .env = {{"MXJIT_COMPILE", "forbid"}, {"MXJIT_BUNDLE_PATH", path("kernels.bundle").string()}}};
  const auto json = tool({"explain", "row.json", "--arch", "sm_90a", "--json"}, forbidden).json();
  EXPECT_EQ(json["outcome"], "hit");
  EXPECT_NE(json["layer"].get<std::string>().find("kernels.bundle"), std::string::npos);

  // Imported, exported again: the same bytes.
  ASSERT_EQ(tool({"cache", "import", "kernels.bundle", "--cache", "other"}).status, 0);
  ASSERT_EQ(tool({"cache", "export", "again.bundle", "--cache", "other"}).status, 0);
  EXPECT_TRUE(read("kernels.bundle") == read("again.bundle"));

  const std::string bytes = read("kernels.bundle");
  EXPECT_EQ(tool({"cache", "export", "kernels.bundle", "--cache", "other"}, {.largest_file = 1000}).status,
            1);
  EXPECT_TRUE(read("kernels.bundle") == bytes);
}

TEST_F(Kernels, RemovalAndCollection) {
  if (skipped()) GTEST_SKIP() << why_;
  ASSERT_EQ(on_root({"prewarm", "--problems", "row.json", "dual.json", "--arch", "sm_90a"}).status, 0);
  const auto entries = on_root({"cache", "ls"}).json()["entries"];
  ASSERT_GE(entries.size(), 2U);
  EXPECT_EQ(on_root({"cache", "rm", "00000000"}).status, 2);
  EXPECT_EQ(on_root({"cache", "rm", entries[0]["key"].get<std::string>().substr(0, 8)}).json()["removed"], 1);
  EXPECT_EQ(on_root({"cache", "stats"}).json()["entries"], entries.size() - 1);
  EXPECT_EQ(on_root({"cache", "gc", "--max-entries", "0"}).json()["entries"], 0);
  EXPECT_EQ(on_root({"cache", "rm", "--all"}).json()["removed"], 0);
}

TEST_F(Kernels, WithoutNvrtcPrewarmIsAMissingPart) {
  const Ran ran = on_root({"prewarm", "--problems", "row.json", "--arch", "sm_90a"},
                          {.env = {{"MXJIT_NVRTC", "/nowhere/libnvrtc.so"}}});
  EXPECT_EQ(ran.status, 3) << ran.err;
  EXPECT_NE(ran.err.find("/nowhere/libnvrtc.so"), std::string::npos) << ran.err;
}

TEST_F(Kernels, UnsafeRootsAreRefused) {
  std::filesystem::create_directory(path("real"));
  std::filesystem::create_directory_symlink("real", path("link"));
  std::filesystem::create_directory(path("open"));
  std::filesystem::permissions(path("open"), std::filesystem::perms::all);
  const std::vector<std::pair<std::string, std::string>> unsafe = {{"link", "symlink"},
                                                                   {"open", "world-writable"}};
  for (const auto& [root, word] : unsafe) {
    const Ran ran = tool({"prewarm", "--problems", "row.json", "--arch", "sm_90a", "--cache", root});
    EXPECT_EQ(ran.status, 2) << root << ran.err;
    EXPECT_NE(ran.err.find(word), std::string::npos) << ran.err;
    EXPECT_EQ(tool({"cache", "stats", "--cache", root}).status, 2) << root;
  }
  EXPECT_TRUE(std::filesystem::is_empty(path("real")));
  EXPECT_TRUE(std::filesystem::is_empty(path("open")));
}

TEST_F(Kernels, AFullDiskFailsPrewarm) {
  if (skipped()) GTEST_SKIP() << why_;
  const Ran ran = on_root({"prewarm", "--problems", "row.json", "--arch", "sm_90a"}, {.largest_file = 1000});
  EXPECT_EQ(ran.status, 1) << ran.err;
  EXPECT_EQ(on_root({"cache", "stats"}).json()["entries"], 0);
}

TEST_F(Kernels, ModelConfigurations) {
  write("config.json", R"({"architectures":["LlamaForCausalLM"],"model_type":"llama","hidden_size":256,
    "intermediate_size":512,"num_attention_heads":8,"num_key_value_heads":2,"num_hidden_layers":2,
    "vocab_size":1000,"rms_norm_eps":1e-5,"hidden_act":"silu","torch_dtype":"bfloat16"})");
  const Ran ran = on_root({"prewarm", "--model", "config.json", "--arch", "sm_90a", "--dry-run"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  EXPECT_GT(ran.json()["kernels"], 0);
  EXPECT_EQ(on_root({"prewarm", "--model", "config.json", "--tp", "3", "--dry-run"}).status, 2);
  EXPECT_EQ(on_root({"prewarm", "--model", "config.json", "--max-tokens", "0", "--dry-run"}).status, 2);
  write("config.json", R"({"architectures":["NoSuchModel"]})");
  const Ran unknown = on_root({"prewarm", "--model", "config.json", "--dry-run"});
  EXPECT_EQ(unknown.status, 2);
  EXPECT_NE(unknown.err.find("Llama"), std::string::npos) << unknown.err;
}

}  // namespace
}  // namespace mxjit::test
