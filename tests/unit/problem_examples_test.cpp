// The examples of src/problem/README.md are problems, one of every op that it describes at least.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <string>

#include "cache/support.hpp"
#include "problem/problem.hpp"

namespace mxjit::problem {
namespace {

TEST(ProblemExamples, OfTheDocumentAreProblems) {
  const std::string text = test::read_bytes(std::filesystem::path(MXJIT_TESTS_DIR).parent_path() / "src" /
                                            "problem" / "README.md");
  const std::string opening = "```json\n", closing = "```";
  std::set<std::string> ops;
  for (std::size_t at = text.find(opening); at != std::string::npos; at = text.find(opening, at)) {
    at += opening.size();
    const std::size_t end = text.find(closing, at);
    const std::string example = text.substr(at, end - at);
    SCOPED_TRACE(example);
    EXPECT_NO_THROW(ops.emplace(op_name(parse(example))));
    at = end + closing.size();
  }
  EXPECT_EQ(ops,
            (std::set<std::string>{"quantize", "dequantize", "pack_scales", "pad_groups", "gemm", "moe"}));
}

}  // namespace
}  // namespace mxjit::problem
