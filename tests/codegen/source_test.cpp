// The generated translation unit, and the templates that it includes.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

#include "sample.hpp"

namespace mxjit::codegen {
namespace {

TEST(Source, Golden) {
  EXPECT_EQ(generate_source(test::sample()),
            R"(// Generated for sm_90a by mxjit from one template and one configuration:
// {"cluster":1,"constants":{"big":1099511627776,"columns":4,"mode":"TinyMode::add","twice":true},"kernel":"tiny/scale_add","min_blocks":2,"schema":1,"shared_bytes":1024,"target":"sm_90a","threads":128}
#include "tiny/scale_add.cuh"
#include "launch/entry.cuh"

namespace mxjit {

struct Config {
  static constexpr long long big = 1099511627776;
  static constexpr int columns = 4;
  static constexpr auto mode = TinyMode::add;
  static constexpr bool twice = true;
  static constexpr int threads = 128;
  static constexpr int shared_bytes = 1024;
  static constexpr int cluster = 1;
};

}  // namespace mxjit

extern "C" __global__ void __launch_bounds__(128, 2)
mxjit_tiny_scale_add(const __grid_constant__ mxjit::TinyScaleAdd::Params params) {
  mxjit::enter<mxjit::TinyScaleAdd, mxjit::Config>(params);
}
)");
}

TEST(Source, SymbolComesFromTheTemplate) { EXPECT_EQ(symbol(test::sample()), "mxjit_tiny_scale_add"); }

TEST(Templates, EveryFileOfKernelsIsEmbeddedByteForByte) {
  const std::filesystem::path kernels = std::filesystem::path(MXJIT_TESTS_DIR).parent_path() / "kernels";
  std::map<std::string, std::string> files;
  for (const auto& item : std::filesystem::recursive_directory_iterator(kernels)) {
    if (item.path().extension() != ".cuh") continue;
    std::ifstream in(item.path(), std::ios::binary);
    files[item.path().lexically_relative(kernels).generic_string()] = {std::istreambuf_iterator<char>(in),
                                                                       {}};
  }
  ASSERT_FALSE(files.empty());
  ASSERT_EQ(templates().size(), files.size());
  for (const Template& file : templates())
    EXPECT_TRUE(files.at(std::string(file.name)) == file.text) << file.name;
  EXPECT_TRUE(std::is_sorted(templates().begin(), templates().end(),
                             [](const Template& a, const Template& b) { return a.name < b.name; }));
}

TEST(Templates, A26DigestFollowsContentAndNameOnly) {
  const std::vector<Template> plain = {{"a.cuh", "text"}, {"b.cuh", ""}};
  EXPECT_EQ(digest_of(plain), digest_of({{"a.cuh", "text"}, {"b.cuh", ""}}));
  EXPECT_NE(digest_of(plain), digest_of({{"a.cuh", "tex"}, {"b.cuh", "t"}}));
  EXPECT_NE(digest_of(plain), digest_of({{"a.cuh", "Text"}, {"b.cuh", ""}}));
  EXPECT_NE(digest_of(plain), digest_of({{"c.cuh", "text"}, {"b.cuh", ""}}));
  EXPECT_NE(key(test::sample(), digest_of(plain)), key(test::sample(), digest_of({{"a.cuh", "Text"}})));
}

}  // namespace
}  // namespace mxjit::codegen
