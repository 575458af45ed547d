// The build step that embeds templates: any byte survives it, and equal folders give equal output.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>

namespace {

namespace fs = std::filesystem;

std::string read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// What the compiler makes of the literals: the escapes are the file's bytes.
std::string decode(const std::string& text) {
  std::string bytes;
  for (std::size_t at = text.find("\\x"); at != std::string::npos; at = text.find("\\x", at + 2)) {
    bytes += static_cast<char>(std::stoi(text.substr(at + 2, 2), nullptr, 16));
  }
  return bytes;
}

TEST(Embed, AnyContentSurvives) {
  const fs::path folder =
      fs::temp_directory_path() / ("mxjit_embed_" + std::to_string(std::random_device{}()));
  fs::create_directories(folder / "k");
  std::string content = ")MXJIT\" ; [ ] ]] \\ \" ${x} @y@ ;; \r\n trailing \\\n";
  for (int byte = 0; byte < 256; ++byte) content += static_cast<char>(byte);
  for (int i = 0; i < 3000; ++i) content += "// a line of a long template; with [brackets]\n";
  std::ofstream(folder / "k" / "odd.cuh", std::ios::binary) << content;
  std::ofstream(folder / "k" / "empty.cuh", std::ios::binary) << "";
  const fs::path script = fs::path(MXJIT_TESTS_DIR).parent_path() / "tools/cmake/WriteEmbedded.cmake";
  for (const char* name : {"one.cpp", "two.cpp"}) {
    const std::string command = "cmake -DOUTPUT='" + (folder / name).string() + "' -DFOLDER='" +
                                (folder / "k").string() + "' '-DHEADERS=empty.cuh;odd.cuh' -P '" +
                                script.string() + "'";
    if (std::system("cmake --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "no cmake on PATH";
    ASSERT_EQ(std::system(command.c_str()), 0);
  }
  const std::string text = read(folder / "one.cpp");
  EXPECT_EQ(text, read(folder / "two.cpp"));
  EXPECT_TRUE(decode(text) == content);
  EXPECT_NE(text.find("{\"empty.cuh\",\n       {\"\", 0}}"), std::string::npos);
  EXPECT_NE(text.find(", " + std::to_string(content.size()) + "}}"), std::string::npos);
  fs::remove_all(folder);
}

}  // namespace
