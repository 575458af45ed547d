// The bench command: its errors, and the dispatch suite from end to end on whatever driver is here.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "bench/bench.hpp"
#include "bench/suites.hpp"
#include "bench/temporary_folder.hpp"
#include "codegen/with_nvrtc.hpp"
#include "driver/driver.hpp"
#include "mxjit/error.hpp"

namespace mxjit::bench {
namespace {

ErrorCode error_of(const BenchOptions& options) {
  try {
    bench_command(options);
  } catch (const Error& error) {
    return error.code();
  }
  ADD_FAILURE() << options.suite << " did not throw";
  return ErrorCode::internal;
}

TEST(BenchCommand, NamesWhatIsWrong) {
  BenchOptions options;
  options.suite = "quantise";
  EXPECT_EQ(error_of(options), ErrorCode::invalid_argument);
  options.suite = "gemm_mx";
  EXPECT_EQ(error_of(options), ErrorCode::unsupported);
  const TemporaryFolder folder;
  options.suite = "dispatch";
  options.out = folder.path() / "file";
  std::ofstream(options.out) << "in the way";
  EXPECT_EQ(error_of(options), ErrorCode::io);
}

TEST(BenchCommand, ChoosesRowsByNameAndShape) {
  BenchOptions options;
  options.only = "^(row|dual) .* 16384x";
  EXPECT_TRUE(is_chosen(options, "dual 1x32 rceil plain 16384x5120"));
  EXPECT_FALSE(is_chosen(options, "dual 1x32 rceil plain 8192x5120"));
  for (const char* suite : {"quantize", "gemm", "overlap"}) {
    options.suite = suite;
    options.only = "(";
    EXPECT_EQ(error_of(options), ErrorCode::invalid_argument);
    options.only = "no such row";
    EXPECT_EQ(error_of(options), ErrorCode::invalid_argument);
  }
  options.suite = "dispatch";
  EXPECT_EQ(error_of(options), ErrorCode::invalid_argument) << "it has no rows to choose from";
}

TEST(BenchCommand, QuantizeNeedsAGpu) {
  if (driver::why_no_gpu().empty()) GTEST_SKIP() << "there is a GPU here";
  BenchOptions options;
  options.suite = "quantize";
  EXPECT_EQ(error_of(options), ErrorCode::unavailable);
}

TEST(BenchCommand, DispatchWritesItsResult) {
  if (const std::string why = test::why_no_nvrtc(); !why.empty()) GTEST_SKIP() << why;
  const TemporaryFolder folder;
  BenchOptions options;
  options.suite = "dispatch";
  options.out = folder.path() / "a" / "b";
  options.quick = true;
  EXPECT_EQ(bench_command(options), 0);

  EXPECT_GT(std::filesystem::file_size(options.out / "dispatch.md"), 0U);
  std::ifstream file(options.out / "dispatch.json");
  const nlohmann::json result = nlohmann::json::parse(file);
  EXPECT_EQ(result.at("suite"), "dispatch");
  EXPECT_EQ(result.at("digest").get<std::string>().size(), 64U);
  int measured = 0;
  for (const auto& row : result.at("rows")) {
    EXPECT_TRUE(row.at("correct").get<bool>()) << row.at("name");
    EXPECT_GT(row.at("us").get<double>(), 0) << row.at("name");
    measured += row.contains("over_bare_us") ? 1 : 0;
  }
  EXPECT_GE(measured, 4);  // one call and held plan, of row and of dual
}

}  // namespace
}  // namespace mxjit::bench
