// Configurations: what problems get, what is refused, and that ranges yield all of it.
#include "configure/configure.hpp"

#include <gtest/gtest.h>

#include <set>

#include "mxjit/error.hpp"

namespace mxjit::configure {
namespace {

problem::Problem quantize(const std::string& fields) {
  return problem::parse(R"({"schema": 1, "op": "quantize", "scaling": "mx", )" + fields + "}");
}

constexpr const char* bf16 = R"("block": 32, "input": {"dtype": "bf16", "shape": [384, 640]})";

TEST(Profiles, EveryTargetHasADefault) {
  std::set<std::string_view> names;
  for (const Profile& candidate : profiles()) {
    EXPECT_TRUE(names.insert(candidate.name).second) << candidate.name;
    EXPECT_EQ(&profile(candidate.name), &candidate);
    EXPECT_EQ(default_profile(candidate.target).target, candidate.target);
    EXPECT_LE(candidate.shared_bytes_per_block, candidate.shared_bytes_per_sm);
  }
  EXPECT_EQ(default_profile("sm_90a").name, "h200");
}

TEST(Profiles, UnknownNamesListTheKnown) {
  try {
    profile("h201");
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_NE(std::string(error.what()).find("\"h200\", \"h100-sxm\""), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("\"h201\""), std::string::npos);
  }
  EXPECT_THROW(default_profile("sm_80"), Error);
}

TEST(Configure, IsPureAndIndependentOfM) {
  const Profile& h200 = profile("h200");
  const auto one = configure(quantize(bf16), h200);
  ASSERT_EQ(one.size(), 1U);
  EXPECT_EQ(one, configure(quantize(bf16), h200));
  EXPECT_EQ(one.front().kernel, "quantize/mx");
  EXPECT_EQ(one.front().threads % 32, 0);
}

TEST(Configure, ARangeCoversEveryProblemInside) {
  const Profile& h200 = profile("h200");
  const auto range = configure(
      quantize(
          R"("block": 32, "axes": ["row", "col"], "input": {"dtype": "bf16", "shape": [{"min": 1, "max": 40000}, 5120]})"),
      h200);
  EXPECT_EQ(std::set(range.begin(), range.end()).size(), range.size());
  for (int m = 1; m <= 40000; m = m * 3 / 2 + 1) {
    const auto one =
        configure(quantize(R"("block": 32, "axes": ["row", "col"], "input": {"dtype": "bf16", "shape": [)" +
                           std::to_string(m) + ", 5120]}"),
                  h200);
    for (const Configuration& configuration : one) {
      EXPECT_NE(std::find(range.begin(), range.end(), configuration), range.end()) << m;
    }
  }
}

TEST(Configure, ATransposedInputExchangesTheAxes) {
  const Profile& h200 = profile("h200");
  EXPECT_EQ(
      configure(
          quantize(
              R"("block": 32, "axes": ["col"], "input": {"dtype": "bf16", "shape": [64, 96], "layout": "col"})"),
          h200),
      configure(quantize(R"("block": 32, "axes": ["row"], "input": {"dtype": "bf16", "shape": [96, 64]})"),
                h200));
}

TEST(Configure, RefusesByName) {
  const auto refused = [](const problem::Problem& problem) -> std::string {
    try {
      configure(problem, profile("h200"));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::unsupported);
      return error.argument();
    }
    return "nothing";
  };
  EXPECT_EQ(refused(quantize(std::string(bf16) + R"(, "pre": {"kind": "rmsnorm", "eps": 1e-6})")), "/pre");
  EXPECT_EQ(
      refused(problem::parse(
          R"({"schema": 1, "op": "pad_groups", "input": {"dtype": "bf16", "shape": [8, 16]}, "groups": {"count": 2}, "alignment": 32})")),
      "/op");
  EXPECT_EQ(refused(quantize(bf16)), "nothing");
}

}  // namespace
}  // namespace mxjit::configure
