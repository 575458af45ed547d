// Every golden case against the reference.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "contract/golden.hpp"

namespace mxjit::contract {
namespace {

// Cases that no single problem describes have a test of their own, GoldenComposite.
bool is_composite(const std::filesystem::path& folder) {
  return nlohmann::json::parse(read_text(folder / "problem.json")).at("op") == "composite";
}

class Golden : public testing::TestWithParam<std::string> {};

TEST_P(Golden, MatchesTheReference) {
  if (goldens().empty()) GTEST_SKIP() << "MXJIT_GOLDENS is not set";
  const std::filesystem::path folder = goldens() / GetParam();
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no such case in MXJIT_GOLDENS";
  check_case(folder);
}

INSTANTIATE_TEST_SUITE_P(Cases, Golden, testing::ValuesIn(golden_names()),
                         [](const auto& name) { return name.param; });

// A folder may hold more cases than the names above.
TEST(GoldenFolder, EveryOtherCaseMatchesTheReference) {
  if (goldens().empty()) GTEST_SKIP() << "MXJIT_GOLDENS is not set";
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(goldens())) {
    const std::string name = entry.path().filename().string();
    if (!std::filesystem::exists(entry.path() / "problem.json") || is_composite(entry.path())) continue;
    if (std::find(golden_names().begin(), golden_names().end(), name) != golden_names().end()) continue;
    SCOPED_TRACE(name);
    EXPECT_NO_THROW(check_case(entry.path()));
    ++count;
  }
  RecordProperty("cases", count);
  if (count == 0) GTEST_SKIP() << "no other case in MXJIT_GOLDENS";
}

}  // namespace
}  // namespace mxjit::contract
