// mxjit quantize on a folder: shards, index, configuration, what else lies there, and the life of OUT.
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>

#include "cli/tensor_file.hpp"
#include "cli/tool.hpp"

namespace mxjit::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* index_name = "in/model.safetensors.index.json";
constexpr const char* first = "model-00001-of-00002.safetensors";
constexpr const char* second = "model-00002-of-00002.safetensors";

class QuantizeFolder : public ToolTest {
 protected:
  void SetUp() override {
    ToolTest::SetUp();
    fs::create_directory(path("in"));
    write(std::string("in/") + first, tensor_file({{"model.embed_tokens.weight", "BF16", {2, 32}, ones},
                                                   {"model.layers.0.q_proj.weight", "BF16", {2, 32}, ones}},
                                                  {{"format", "pt"}}));
    write(std::string("in/") + second, tensor_file({{"model.layers.0.norm.weight", "BF16", {64}, ones},
                                                    {"model.layers.0.o_proj.weight", "BF16", {2, 32}, ones},
                                                    {"lm_head.weight", "BF16", {2, 32}, ones}},
                                                   {{"format", "pt"}}));
    index_ = {{"metadata", {{"total_size", 5 * 128}, {"note", "kept"}}},
              {"weight_map",
               {{"model.embed_tokens.weight", first},
                {"model.layers.0.q_proj.weight", first},
                {"model.layers.0.norm.weight", second},
                {"model.layers.0.o_proj.weight", second},
                {"lm_head.weight", second}}}};
    write(index_name, index_.dump(2));
    write("in/config.json", R"({"zeta": 1, "architectures": ["LlamaForCausalLM"], "alpha": {"x": 2.5}})");
    write("in/tokenizer.json", "{\"tokens\": \"\xc3\xa9\"}");
    write("in/consolidated.safetensors", "another form of the same weights");
    write("in/pytorch_model.bin", "and another");
    fs::create_directory(path("in/original"));
  }
  Ran quantize(const std::vector<std::string>& more = {}, const How& how = {},
               const std::string& out = "out") {
    std::vector<std::string> args = {"quantize", "in", out, "--recipe", "mxfp8", "--device", "cpu"};
    args.insert(args.end(), more.begin(), more.end());
    return tool(args, how);
  }
  // The command fails with `status`, says `words`, and leaves everything as it was.
  void expect_refused(int status, const std::string& words, const std::string& out = "out") {
    const auto before = names();
    const Ran ran = quantize({}, {}, out);
    EXPECT_EQ(ran.status, status) << ran.err;
    EXPECT_NE(ran.err.find(words), std::string::npos) << ran.err << "\nexpected: " << words;
    EXPECT_EQ(names(), before);
  }
  std::set<std::string> names_in(const std::string& folder) const {
    std::set<std::string> found;
    for (const auto& item : fs::directory_iterator(path(folder)))
      found.insert(item.path().filename().string());
    return found;
  }
  json index_;
};

TEST_F(QuantizeFolder, ShardsIndexConfigurationAndTheRest) {
  const Ran ran = quantize({"--json"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(ran.json()["quantized"],
            (std::vector<std::string>{"model.layers.0.o_proj.weight", "model.layers.0.q_proj.weight"}));
  EXPECT_EQ(ran.json()["shards"], 2);
  EXPECT_EQ(ran.json()["copied"], 3);
  EXPECT_EQ(ran.json()["bytes_in"], 5 * 128);
  EXPECT_EQ(ran.json()["bytes_out"], 3 * 128 + 2 * (64 + 2));
  for (const char* name : {"consolidated.safetensors", "pytorch_model.bin", "original"})
    EXPECT_NE(ran.err.find(name), std::string::npos) << ran.err;

  EXPECT_EQ(names_in("out"), (std::set<std::string>{first, second, "config.json", "tokenizer.json",
                                                    "model.safetensors.index.json"}));
  EXPECT_EQ(names(), (std::set<std::string>{"in", "out"}));  // no temporary is left
  EXPECT_EQ(read("out/tokenizer.json"), read("in/tokenizer.json"));
  EXPECT_EQ(read(index_name), index_.dump(2));  // the input is left alone

  const json index = json::parse(read("out/model.safetensors.index.json"));
  EXPECT_EQ(index["metadata"]["total_size"], 3 * 128 + 2 * (64 + 2));
  EXPECT_EQ(index["metadata"]["note"], "kept");
  json expected = index_["weight_map"];
  expected["model.layers.0.q_proj.weight_scale"] = first;
  expected["model.layers.0.o_proj.weight_scale"] = second;
  EXPECT_EQ(index["weight_map"], expected);
  for (const auto& [tensor, shard] : index["weight_map"].items()) {
    const ReadFile file(read("out/" + shard.get<std::string>()));
    EXPECT_TRUE(file.header.contains(tensor)) << tensor;
  }
  const ReadFile out(read(std::string("out/") + second));
  EXPECT_EQ(out.bytes("model.layers.0.o_proj.weight"), std::string(64, '\x78'));
  EXPECT_EQ(out.bytes("model.layers.0.o_proj.weight_scale"), "\x77\x77");
  EXPECT_EQ(out.bytes("lm_head.weight"), ones);
  EXPECT_EQ(out.header["__metadata__"]["format"], "pt");

  const auto config = nlohmann::ordered_json::parse(read("out/config.json"));
  EXPECT_EQ(config.items().begin().key(), "zeta");  // in the order that it had
  EXPECT_EQ(config["alpha"]["x"], 2.5);
  EXPECT_EQ(config["quantization_config"]["quant_method"], "mxfp8");
  EXPECT_EQ(config["quantization_config"]["modules_to_not_convert"],
            (std::vector<std::string>{"lm_head", "model.embed_tokens"}));
}

TEST_F(QuantizeFolder, OneFileWithoutAnIndex) {
  fs::remove_all(path("in"));
  fs::create_directory(path("in"));
  write("in/model.safetensors", tensor_file({{"a.weight", "BF16", {2, 32}, ones}}));
  ASSERT_EQ(quantize().status, 0);
  EXPECT_EQ(names_in("out"), (std::set<std::string>{"model.safetensors"}));
  EXPECT_EQ(ReadFile(read("out/model.safetensors")).bytes("a.weight"), std::string(64, '\x78'));
  fs::remove(path("in/model.safetensors"));
  fs::remove_all(path("out"));
  expect_refused(2, "model.safetensors.index.json");
}

TEST_F(QuantizeFolder, GlobsChooseOverAllShards) {
  const auto chosen = [&](const std::vector<std::string>& more) {
    std::vector<std::string> args = more;
    args.push_back("--json");
    const Ran ran = quantize(args);
    EXPECT_EQ(ran.status, 0) << ran.err;
    fs::remove_all(path("out"));
    return ran.json()["quantized"].get<std::vector<std::string>>();
  };
  EXPECT_EQ(chosen({"--include", "lm_head*", "--include", "*embed*"}),
            (std::vector<std::string>{"lm_head.weight", "model.embed_tokens.weight"}));
  EXPECT_EQ(chosen({"--exclude", "*.q_proj.*"}), (std::vector<std::string>{"model.layers.0.o_proj.weight"}));
  EXPECT_EQ(quantize({"--include", "*nothing*"}).status, 2);
  EXPECT_FALSE(exists("out"));
}

TEST_F(QuantizeFolder, AnIndexThatIsWrongIsRefusedByName) {
  const auto with = [&](const auto& change, const std::string& words) {
    json index = index_;
    change(index);
    write(index_name, index.dump());
    expect_refused(2, words);
  };
  with([](json& index) { index["weight_map"]["x.weight"] = "model-00003-of-00003.safetensors"; },
       "model-00003-of-00003.safetensors");
  with([](json& index) { index["weight_map"]["lm_head.weight"] = first; }, "the index says");
  with([](json& index) { index["weight_map"].erase("lm_head.weight"); }, "is not in the index");
  with([](json& index) { index["weight_map"]["ghost.weight"] = first; }, "is in none of the shards");
  for (const char* name : {"../x.safetensors", "/etc/x.safetensors", "a/b.safetensors", "..", ".", "",
                           "x.bin", "a\\b.safetensors"})
    with([&](json& index) { index["weight_map"]["lm_head.weight"] = name; },
         "of the same folder is expected");
  with([](json& index) { index["weight_map"]["lm_head.weight"] = 3; }, "the name of a shard");
  with([](json& index) { index["weight_map"] = json::object(); }, "weight_map");
  with([](json& index) { index.erase("weight_map"); }, "weight_map");
  write(index_name, R"({"weight_map": {"a": "x.safetensors", "a": "y.safetensors"}})");
  expect_refused(2, "/weight_map/a: the key appears twice");
  write(index_name, "[]");
  expect_refused(2, "object");
  write(index_name, "{");
  expect_refused(2, "index.json");
}

TEST_F(QuantizeFolder, ShardsThatAreWrongAreRefusedByName) {
  const std::string good = read(std::string("in/") + first);
  write(std::string("in/") + first, tensor_file({{"model.embed_tokens.weight", "BF16", {2, 32}, ones},
                                                 {"model.layers.0.q_proj.weight", "BF16", {2, 32}, ones},
                                                 {"lm_head.weight", "BF16", {2, 32}, ones}}));
  expect_refused(2, "\"lm_head.weight\" lies here and in");
  write(std::string("in/") + first, good.substr(0, good.size() - 1));
  expect_refused(2, first);
  write(std::string("in/") + first, good);
  // Scales of one shard would take the name of a tensor of another.
  write(std::string("in/") + second,
        tensor_file({{"model.layers.0.norm.weight", "BF16", {64}, ones},
                     {"model.layers.0.o_proj.weight", "BF16", {2, 32}, ones},
                     {"lm_head.weight", "BF16", {2, 32}, ones},
                     {"model.layers.0.q_proj.weight_scale", "F32", {1}, std::string(4, '\0')}}));
  index_["weight_map"]["model.layers.0.q_proj.weight_scale"] = second;
  write(index_name, index_.dump());
  expect_refused(2, "model.layers.0.q_proj.weight_scale");
}

TEST_F(QuantizeFolder, AQuantizedCheckpointIsRefused) {
  write("in/config.json", R"({"quantization_config": {"quant_method": "fp8"}})");
  expect_refused(2, "quantized already");
  write("in/config.json", R"({"quantization_config": null})");
  EXPECT_EQ(quantize().status, 0);
}

TEST_F(QuantizeFolder, OutIsANewFolder) {
  expect_refused(2, "inside IN", "in/out");
  expect_refused(2, "inside IN", "in/original/out");
  expect_refused(2, "not empty", "in");
  expect_refused(2, "there is no folder", "no/out");
  write("file", "kept");
  expect_refused(2, "no folder", "file");
  fs::create_directory(path("full"));
  write("full/kept", "kept");
  expect_refused(2, "not empty", "full");
  EXPECT_EQ(names_in("full"), (std::set<std::string>{"kept"}));
  fs::create_directory(path("empty"));
  EXPECT_EQ(quantize({}, {}, "empty").status, 0);
  EXPECT_TRUE(exists("empty/config.json"));
  EXPECT_EQ(quantize({}, {}, "slash/").status, 0);
  EXPECT_TRUE(exists("slash/config.json"));
}

TEST_F(QuantizeFolder, SymlinkedShardsAreRead) {  // as a Hugging Face cache holds them
  fs::create_directory(path("blobs"));
  fs::rename(path(std::string("in/") + first), path("blobs/1"));
  fs::create_symlink("../blobs/1", path(std::string("in/") + first));
  fs::create_symlink("../nowhere", path("in/dangling.json"));
  const Ran ran = quantize();
  ASSERT_EQ(ran.status, 0) << ran.err;
  EXPECT_NE(ran.err.find("dangling.json"), std::string::npos) << ran.err;
  EXPECT_FALSE(fs::is_symlink(path(std::string("out/") + first)));
}

TEST_F(QuantizeFolder, AFullDiskLeavesNothing) {
  write("in/tokenizer.json", std::string(3000, ' '));
  const auto before = names();
  for (const std::uint64_t limit : {100U, 2500U}) {  // the first shard, the tokenizer
    const Ran ran = quantize({}, {.largest_file = limit});
    EXPECT_EQ(ran.status, 1) << limit << ran.err;
    EXPECT_EQ(names(), before) << limit;
  }
}

// Killed while it works: OUT does not exist; a later run removes what was left, once it is a minute old.
TEST_F(QuantizeFolder, AKilledRunLeavesNoOutAndIsSweptLater) {
  std::vector<FileTensor> many;
  for (int i = 0; i < 200; ++i)
    many.push_back({"t" + std::to_string(i) + ".weight", "BF16", {64, 1024}, repeat16(bf16_one, 64 * 1024)});
  write(std::string("in/") + first, tensor_file(many));
  json index = {{"weight_map", json::object()}};
  for (const FileTensor& tensor : many) index["weight_map"][tensor.name] = first;
  for (const char* name : {"model.layers.0.norm.weight", "model.layers.0.o_proj.weight", "lm_head.weight"})
    index["weight_map"][name] = second;
  write(index_name, index.dump());
  const auto stray = [&] {
    for (const std::string& name : names())
      if (name.starts_with(".mxjit-")) return name;
    return std::string();
  };
  const Ran killed = quantize({}, {.kill_when = [&] { return !stray().empty(); }});
  ASSERT_EQ(killed.status, 128 + 9);
  EXPECT_FALSE(exists("out"));
  const std::string left = stray();
  ASSERT_NE(left, "");
  ASSERT_EQ(quantize({"--include", "lm_head*"}, {}, "young").status, 0);
  EXPECT_TRUE(exists(left));
  if (!exists(left + "/.lock")) return;  // killed before it was made
  fs::last_write_time(path(left + "/.lock"), fs::file_time_type::clock::now() - std::chrono::minutes(5));
  ASSERT_EQ(quantize({"--include", "lm_head*"}, {}, "old").status, 0);
  EXPECT_FALSE(exists(left));
}

// The same for a single file, after an hour.
TEST_F(QuantizeFolder, StrayFilesAreSweptLater) {
  for (const char* name : {".mxjit-old", ".mxjit-young", "mxjit-mine"}) write(name, "half");
  for (const char* name : {".mxjit-old", "mxjit-mine"})
    fs::last_write_time(path(name), fs::file_time_type::clock::now() - std::chrono::hours(2));
  ASSERT_EQ(tool({"quantize", std::string("in/") + first, "out.safetensors", "--recipe", "mxfp8", "--device",
                  "cpu"})
                .status,
            0);
  EXPECT_EQ(names(), (std::set<std::string>{".mxjit-young", "mxjit-mine", "in", "out.safetensors"}));
}

TEST_F(QuantizeFolder, ThePythonPackageReadsIt) {
  const char* python = std::getenv("MXJIT_PYTHON");
  if (python == nullptr) GTEST_SKIP() << "MXJIT_PYTHON names no Python with numpy and safetensors";
  ASSERT_EQ(quantize().status, 0);
  write("check.py", R"(
import json, os, struct, sys
from safetensors import safe_open
folder = sys.argv[1]
index = json.load(open(os.path.join(folder, "model.safetensors.index.json")))
seen, size = {}, 0
for shard in sorted(set(index["weight_map"].values())):
    path = os.path.join(folder, shard)
    with safe_open(path, framework="np") as f:
        for name in f.keys():
            assert name not in seen
            seen[name] = shard
            assert f.get_slice(name).get_shape() is not None
    with open(path, "rb") as f:
        length, = struct.unpack("<Q", f.read(8))
        header = json.loads(f.read(length))
        size += max(t["data_offsets"][1] for n, t in header.items() if n != "__metadata__")
assert seen == index["weight_map"], (seen, index)
assert size == index["metadata"]["total_size"], size
assert json.load(open(os.path.join(folder, "config.json")))["quantization_config"]["weight_block_size"] == [1, 32]
)");
  const std::string command =
      std::string("'") + python + "' '" + path("check.py").string() + "' '" + path("out").string() + "'";
  EXPECT_EQ(std::system(command.c_str()), 0);
}

}  // namespace
}  // namespace mxjit::test
