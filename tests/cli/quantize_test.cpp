// mxjit quantize: which tensors change, what is copied, and the life of its output file.
#include "cli/tensor_file.hpp"
#include "cli/tool.hpp"

namespace mxjit::test {
namespace {

class Quantize : public ToolTest {
 protected:
  void SetUp() override {
    ToolTest::SetUp();
    std::string words(16, '\0');
    for (std::size_t i = 0; i < words.size(); ++i) words[i] = static_cast<char>(i);
    write("in.safetensors", tensor_file({{"model.embed_tokens.weight", "BF16", {2, 32}, ones},
                                         {"model.layers.0.self_attn.q_proj.weight", "BF16", {2, 32}, ones},
                                         {"model.layers.0.mlp.down_proj.weight", "BF16", {2, 32}, ones},
                                         {"model.layers.0.mlp.gate.weight", "BF16", {2, 32}, ones},
                                         {"model.layers.0.mlp.gate_proj.weight", "BF16", {2, 32}, ones},
                                         {"model.layers.0.experts.weight", "BF16", {1, 2, 32}, ones},
                                         {"model.layers.0.input_layernorm.weight", "BF16", {64}, ones},
                                         {"model.layers.0.ids.weight", "I64", {1, 2}, words},
                                         {"lm_head.weight", "BF16", {2, 32}, ones}},
                                        {{"format", "pt"}, {"note", "kept"}}));
  }
  Ran quantize(const std::vector<std::string>& more = {}, const How& how = {}) {
    std::vector<std::string> args = {"quantize", "in.safetensors", "out.safetensors", "--device", "cpu"};
    args.insert(args.end(), more.begin(), more.end());
    return tool(args, how);
  }
};

TEST_F(Quantize, DefaultChoiceAndCopies) {
  const Ran ran = quantize({"--recipe", "mxfp8", "--json"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  const std::vector<std::string> chosen = {
      "model.layers.0.experts.weight", "model.layers.0.mlp.down_proj.weight",
      "model.layers.0.mlp.gate_proj.weight", "model.layers.0.self_attn.q_proj.weight"};
  EXPECT_EQ(ran.json()["quantized"], chosen);
  EXPECT_EQ(ran.json()["copied"], 5);

  const ReadFile in(read("in.safetensors")), out(read("out.safetensors"));
  for (const std::string& name : chosen) {
    EXPECT_EQ(out.dtype(name), "F8_E4M3");
    EXPECT_EQ(out.shape(name), in.shape(name));
    EXPECT_EQ(out.bytes(name), std::string(64, '\x78'));
    EXPECT_EQ(out.dtype(name + "_scale"), "F8_E8M0");
    EXPECT_EQ(out.bytes(name + "_scale"), "\x77\x77");
  }
  EXPECT_EQ(out.shape("model.layers.0.experts.weight_scale"), (std::vector<std::int64_t>{1, 2, 1}));
  for (const char* name :
       {"model.embed_tokens.weight", "model.layers.0.mlp.gate.weight",
        "model.layers.0.input_layernorm.weight", "model.layers.0.ids.weight", "lm_head.weight"}) {
    EXPECT_EQ(out.dtype(name), in.dtype(name)) << name;
    EXPECT_EQ(out.shape(name), in.shape(name)) << name;
    EXPECT_EQ(out.bytes(name), in.bytes(name)) << name;
  }
  EXPECT_EQ(out.header.size(), 9U + 4U + 1U);  // tensors, scales, metadata
}

TEST_F(Quantize, MetadataIsKeptAndTellsTheRecipe) {
  ASSERT_EQ(quantize({"--recipe", "mxfp8"}).status, 0);
  const auto metadata = ReadFile(read("out.safetensors")).header["__metadata__"];
  EXPECT_EQ(metadata["format"], "pt");
  EXPECT_EQ(metadata["note"], "kept");
  const auto config = nlohmann::json::parse(metadata["quantization_config"].get<std::string>());
  EXPECT_EQ(config["quant_method"], "mxfp8");
  EXPECT_EQ(config["weight_block_size"], (std::vector<int>{1, 32}));
  EXPECT_EQ(config["modules_to_not_convert"],
            (std::vector<std::string>{"lm_head", "model.embed_tokens", "model.layers.0.mlp.gate"}));
}

TEST_F(Quantize, IncludeAndExclude) {
  const auto chosen = [&](std::vector<std::string> more) {
    more.insert(more.end(), {"--recipe", "mxfp8", "--json"});
    const Ran ran = quantize(more);
    EXPECT_EQ(ran.status, 0) << ran.err;
    return ran.json()["quantized"].get<std::vector<std::string>>();
  };
  EXPECT_EQ(chosen({"--include", "lm_head*"}), (std::vector<std::string>{"lm_head.weight"}));
  EXPECT_EQ(chosen({"--include", "lm_head*", "--include", "*embed*"}),
            (std::vector<std::string>{"lm_head.weight", "model.embed_tokens.weight"}));
  EXPECT_EQ(chosen({"--exclude", "*.mlp.*", "--exclude", "*experts*"}),
            (std::vector<std::string>{"model.layers.0.self_attn.q_proj.weight"}));
  const Ran none = quantize({"--recipe", "mxfp8", "--include", "*nothing*"});
  EXPECT_EQ(none.status, 2) << none.err;
}

TEST_F(Quantize, ShortLastBlock) {
  write("in.safetensors", tensor_file({{"a.weight", "BF16", {1, 33}, repeat16(bf16_one, 33)}}));
  ASSERT_EQ(quantize({"--recipe", "mxfp8"}).status, 0);
  const ReadFile out(read("out.safetensors"));
  EXPECT_EQ(out.bytes("a.weight_scale"), "\x77\x77");
  EXPECT_EQ(out.bytes("a.weight"), std::string(33, '\x78'));
}

TEST_F(Quantize, SquareBlocksShareAScale) {
  write("in.safetensors",
        tensor_file({{"a.weight", "BF16", {33, 32}, repeat16(bf16_one, 32 * 32) + repeat16(0x3f00, 32)}}));
  const Ran ran = quantize({"--recipe", "mxfp8-32x32"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  const ReadFile out(read("out.safetensors"));
  EXPECT_EQ(out.shape("a.weight_scale"), (std::vector<std::int64_t>{2, 1}));
  EXPECT_EQ(out.bytes("a.weight_scale"), "\x77\x76");
}

TEST_F(Quantize, NamesThatCollideAreRefused) {
  write("in.safetensors", tensor_file({{"a.weight", "BF16", {2, 32}, repeat16(bf16_one, 64)},
                                       {"a.weight_scale", "F32", {1}, std::string(4, '\0')}}));
  const Ran ran = quantize({"--recipe", "mxfp8"});
  EXPECT_EQ(ran.status, 2);
  EXPECT_NE(ran.err.find("a.weight_scale"), std::string::npos) << ran.err;
  EXPECT_FALSE(exists("out.safetensors"));
}

TEST_F(Quantize, OutputEqualToInputIsRefused) {
  const std::string before = read("in.safetensors");
  std::filesystem::create_hard_link(path("in.safetensors"), path("hard.safetensors"));
  for (const char* out : {"in.safetensors", "./in.safetensors", "hard.safetensors"})
    EXPECT_EQ(tool({"quantize", "in.safetensors", out, "--recipe", "mxfp8", "--device", "cpu"}).status, 2)
        << out;
  EXPECT_EQ(read("in.safetensors"), before);
}

TEST_F(Quantize, AFullDiskLeavesNothing) {
  const auto before = names();
  EXPECT_EQ(quantize({"--recipe", "mxfp8"}, {.largest_file = 1000}).status, 1);
  EXPECT_EQ(names(), before);
  write("out.safetensors", "old");
  EXPECT_EQ(quantize({"--recipe", "mxfp8"}, {.largest_file = 1000}).status, 1);
  EXPECT_EQ(read("out.safetensors"), "old");
}

}  // namespace
}  // namespace mxjit::test
