// Targets by name.
#include "codegen/target.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "mxjit/error.hpp"

namespace mxjit::codegen {
namespace {

TEST(Target, A33OrderIsNumericNotTextual) {
  std::vector<std::string> names = {"120", "100a", "90", "103f", "75", "100", "90a"};
  std::sort(names.begin(), names.end(),
            [](const std::string& a, const std::string& b) { return parse_target(a) < parse_target(b); });
  EXPECT_EQ(names, (std::vector<std::string>{"75", "90", "90a", "100", "100a", "103f", "120"}));
}

TEST(Target, A32SuffixIsCompletedWhereKernelsNeedIt) {
  for (const char* text : {"sm_90a", "90a", "sm_90", "90", "9.0"})
    EXPECT_EQ(normalize_target(text), "sm_90a");
  EXPECT_EQ(normalize_target("10.0"), "sm_100a");
  EXPECT_EQ(normalize_target("sm_103"), "sm_103a");
  EXPECT_EQ(normalize_target("12.0"), "sm_120a");
}

TEST(Target, A32UnknownTargetListsTheKnown) {
  for (const char* text : {"sm_80", "sm_90x", "", "sm_", "sm_90aa", "hopper", "sm_100f", "-90", "sm_9999"}) {
    try {
      normalize_target(text);
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      EXPECT_NE(std::string(error.what()).find("sm_90a, sm_100a, sm_103a, sm_120a"), std::string::npos)
          << text;
    }
  }
}

}  // namespace
}  // namespace mxjit::codegen
