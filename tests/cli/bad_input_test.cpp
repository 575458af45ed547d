// Bad files: a clear error, exit status 2, no output file, nothing overwritten.
#include "cli/tensor_file.hpp"
#include "cli/tool.hpp"

namespace mxjit::test {
namespace {

class BadInput : public ToolTest {
 protected:
  void SetUp() override {
    ToolTest::SetUp();
    write("problem.json", quantize_problem(2, 32));
    write("in.safetensors", tensor_file({{"x", "BF16", {2, 32}, repeat16(bf16_one, 64)}}));
  }

  // Runs with the files as they are: refused, and the error names `word`.
  void refused(const std::string& what, const std::string& word) {
    SCOPED_TRACE(what);
    for (const bool json : {false, true}) {
      std::vector<std::string> args = {"run",      "problem.json", "in.safetensors", "out.safetensors",
                                       "--device", "cpu"};
      if (json) args.emplace_back("--json");
      const Ran ran = tool(args);
      EXPECT_EQ(ran.status, 2) << ran.err;
      EXPECT_TRUE(ran.err.starts_with("mxjit run: error: ")) << ran.err;
      EXPECT_NE(ran.err.find(word), std::string::npos) << ran.err;
      EXPECT_EQ(names(), (std::set<std::string>{"problem.json", "in.safetensors"}));
      if (json) {
        EXPECT_EQ(ran.json()["error"]["status"], 2);
      } else {
        EXPECT_EQ(ran.out, "");
      }
    }
  }
  void refused_tensors(const std::string& what, const std::string& image, const std::string& word) {
    write("in.safetensors", image);
    refused(what, word);
    const Ran ran =
        tool({"quantize", "in.safetensors", "out.safetensors", "--recipe", "mxfp8", "--device", "cpu"});
    EXPECT_EQ(ran.status, 2) << what << ran.err;
    EXPECT_FALSE(exists("out.safetensors"));
  }
  void refused_problem(const std::string& what, const std::string& text, const std::string& word) {
    write("problem.json", text);
    refused(what, word);
    for (const char* command : {"emit", "explain"})
      EXPECT_EQ(tool({command, "problem.json"}).status, 2) << what;
    EXPECT_EQ(tool({"prewarm", "--problems", "problem.json", "--cache", "cache"}).status, 2) << what;
    EXPECT_FALSE(exists("cache"));
  }
};

std::string header_of(const nlohmann::json& tensors, const std::string& data) {
  return with_header(tensors.dump(), data);
}

nlohmann::json entry(const std::string& dtype, const nlohmann::json& shape, std::uint64_t begin,
                     std::uint64_t end) {
  return {{"dtype", dtype}, {"shape", shape}, {"data_offsets", {begin, end}}};
}

TEST_F(BadInput, SafetensorsHeaders) {
  const std::string good = read("in.safetensors");
  refused_tensors("empty file", "", "in.safetensors");
  refused_tensors("shorter than its length field", good.substr(0, 7), "in.safetensors");
  refused_tensors("header cut off", good.substr(0, 20), "in.safetensors");
  refused_tensors("data cut off", good.substr(0, good.size() - 1), "in.safetensors");
  refused_tensors("bytes after the data", good + "x", "in.safetensors");
  refused_tensors("header length past the file",
                  std::string("\xff\xff\xff\x00\x00\x00\x00\x00", 8) + good.substr(8), "in.safetensors");
  refused_tensors("header length of 2^64 - 1", std::string(8, '\xff') + good.substr(8), "in.safetensors");
  refused_tensors("no JSON", with_header("{x", ""), "in.safetensors");
  refused_tensors("no object", with_header("[]", ""), "in.safetensors");
  refused_tensors("nested 20,000 deep", with_header(std::string(20000, '[') + std::string(20000, ']'), ""),
                  "in.safetensors");
}

TEST_F(BadInput, SafetensorsTensors) {
  const std::string data(128, '\0');
  refused_tensors("unknown dtype", header_of({{"x", entry("F7", {2, 32}, 0, 128)}}, data), "F7");
  refused_tensors("overlapping offsets",
                  header_of({{"x", entry("BF16", {2, 32}, 0, 128)}, {"y", entry("U8", {64}, 64, 128)}}, data),
                  "");
  refused_tensors("a gap", header_of({{"x", entry("BF16", {2, 16}, 64, 128)}}, data), "");
  refused_tensors("offsets backwards", header_of({{"x", entry("BF16", {2, 32}, 128, 0)}}, data), "x");
  refused_tensors("fewer bytes than the shape says", header_of({{"x", entry("BF16", {3, 32}, 0, 128)}}, data),
                  "x");
  refused_tensors("negative extent", header_of({{"x", entry("BF16", {-2, -32}, 0, 128)}}, data), "x");
  refused_tensors("extents whose product overflows",
                  header_of({{"x", entry("BF16", {1LL << 62, 1LL << 62, 16}, 0, 128)}}, data), "x");
}

TEST_F(BadInput, TensorsThatTheProblemDoesNotExpect) {
  const auto refused_x = [&](const std::string& what, const std::string& image, const std::string& word) {
    write("in.safetensors", image);
    refused(what, word);
  };
  refused_x("missing", tensor_file({{"y", "BF16", {2, 32}, repeat16(0, 64)}}), "\"x\" is missing");
  refused_x("wrong dtype", tensor_file({{"x", "F16", {2, 32}, repeat16(0, 64)}}),
            "expected dtype bf16, got fp16");
  refused_x("transposed", tensor_file({{"x", "BF16", {32, 2}, repeat16(0, 64)}}),
            "expected shape [2,32], got [32,2]");
  refused_x("other rank", tensor_file({{"x", "BF16", {64}, repeat16(0, 64)}}), "got [64]");
}

TEST_F(BadInput, ProblemFiles) {
  auto problem = nlohmann::json::parse(quantize_problem(2, 32));
  const auto changed = [&](const std::string& pointer, const nlohmann::json& value) {
    nlohmann::json copy = problem;
    copy[nlohmann::json::json_pointer(pointer)] = value;
    return copy.dump();
  };
  refused_problem("empty", "", "problem.json");
  refused_problem("cut off", quantize_problem(2, 32).substr(0, 30), "problem.json");
  refused_problem("no UTF-8", "{\"op\":\"\xff\"}", "problem.json");
  refused_problem("20,000 deep", std::string(20000, '[') + std::string(20000, ']'), "problem.json");
  refused_problem("20,000 open", std::string(20000, '{'), "problem.json");
  refused_problem("unknown field", changed("/colour", "red"), "/colour");
  refused_problem("unknown op", changed("/op", "convolve"), "/op");
  refused_problem("other schema", changed("/schema", 2), "/schema");
  refused_problem("fractional extent", changed("/input/shape/0", 2.0), "/input/shape/0");
  refused_problem("negative extent", changed("/input/shape/0", -1), "/input/shape/0");
  refused_problem("extents whose product overflows", changed("/input/shape", {1LL << 40, 1LL << 40}),
                  "/input/shape");
  refused_problem("unknown dtype", changed("/input/dtype", "int4"), "/input/dtype");
  refused_problem("unknown block", changed("/block", 33), "/block");
}

TEST_F(BadInput, MissingFiles) {
  std::filesystem::create_directory(path("folder"));
  for (const auto& [problem, in] :
       std::vector<std::pair<std::string, std::string>>{{"none.json", "in.safetensors"},
                                                        {"problem.json", "none"},
                                                        {"folder", "in.safetensors"},
                                                        {"problem.json", "folder"}}) {
    const Ran ran = tool({"run", problem, in, "out.safetensors", "--device", "cpu"});
    EXPECT_EQ(ran.status, 2) << problem << " " << in << ran.err;
    EXPECT_FALSE(exists("out.safetensors"));
  }
}

TEST_F(BadInput, ARangeIsNoProblemToRun) {
  auto problem = nlohmann::json::parse(quantize_problem(2, 32));
  problem["input"]["shape"][0] = {{"min", 1}, {"max", 2}};
  write("problem.json", problem.dump());
  refused("range", "range");
}

}  // namespace
}  // namespace mxjit::test
