// Measured choices in calls, on the stub driver: which tile is compiled, and that nothing more is done for
// it.
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <functional>
#include <future>
#include <set>
#include <string>
#include <vector>

#include "cache/support.hpp"
#include "configure/configure.hpp"
#include "dispatch/load.hpp"
#include "dispatch/problem_of_call.hpp"
#include "mxjit/log.hpp"
#include "unit/on_stub.hpp"

namespace mxjit::dispatch {
namespace {

using driver::stub;
using test::batched_gemm_args;
using test::gemm_args;
using test::rowwise;

constexpr std::int64_t m = 512, n = 5120, k = 5120;

class TunedContext : public ::testing::Test {
 protected:
  void SetUp() override {
    stub().reset();
    compiler_->before = [this](const codegen::KernelDescriptor& descriptor) {
      const auto& constants = descriptor.configuration.constants;
      compiled_.push_back(std::to_string(std::get<std::int64_t>(constants.at("block_m"))) + "x" +
                          std::to_string(std::get<std::int64_t>(constants.at("block_n"))));
    };
  }

  // As a process that starts now.
  std::unique_ptr<Context> start() {
    compiled_.clear();
    return test::stub_context(test::rooted(folder_.root()), compiler_);
  }

  void tune(const std::string& tile, std::int64_t rows, int sm_count = 132) {
    cache::Cache cache(test::rooted(folder_.root()), {nullptr, compiler_});
    const problem::Problem problem = problem::with_defaults(problem_of(rowwise(), gemm_args(rows, n, k)));
    const auto& gemm = std::get<problem::Gemm>(problem.op);
    const auto index = configure::tile_of_name(configure::gemm_traits(gemm), tile);
    ASSERT_TRUE(index);
    cache.change_tuning([&](configure::TuningTable& table) {
      table.devices[{"h200", sm_count}].gemm[configure::TuningTable::class_of(gemm)] = {gemm, *index, 1, 2};
    });
  }

  static constexpr CUstream stream = nullptr;
  test::Folder folder_;
  std::shared_ptr<test::FakeCompiler> compiler_ = std::make_shared<test::FakeCompiler>();
  std::vector<std::string> compiled_;
};

using Names = std::vector<std::string>;

TEST_F(TunedContext, CallsAndPlansGetTheTileOfTheTable) {
  start()->gemm(rowwise(), gemm_args(m, n, k), stream);
  const Names of_model = compiled_;
  ASSERT_EQ(of_model.size(), 1U);
  tune("128x96", m);
  ASSERT_NE(of_model, Names{"128x96"});
  {
    const auto context = start();
    context->gemm(rowwise(), gemm_args(m, n, k), stream);
    EXPECT_EQ(compiled_, Names{"128x96"});
    context->gemm(rowwise(), gemm_args(m - 10, n, k), stream);  // as many rows of tiles
    context->plan(rowwise(), gemm_args(m, n, k)).launch(gemm_args(m, n, k), stream);
    EXPECT_EQ(compiled_, Names{"128x96"});
    context->gemm(rowwise(), gemm_args(m + 1, n, k), stream);
    EXPECT_NE(compiled_, Names{"128x96"});
  }
  const auto plans = start();
  plans->plan(rowwise(), gemm_args(m, n, k));
  EXPECT_EQ(compiled_, Names{});  // it is in the cache
}

// A batch is one launch a matrix: each gets what the matrix by itself would.
TEST_F(TunedContext, MatricesOfABatchGetTheTileOfOne) {
  tune("128x96", m);
  start()->gemm(rowwise(), batched_gemm_args(3, m, n, k), stream);
  EXPECT_EQ(compiled_, Names{"128x96"});
  EXPECT_EQ(stub().launches, 3U);
}

TEST_F(TunedContext, ATableOfAnotherDeviceIsNotForThisOne) {
  start()->gemm(rowwise(), gemm_args(m, n, k), stream);
  tune("128x96", m, 78);
  start()->gemm(rowwise(), gemm_args(m, n, k), stream);
  EXPECT_EQ(compiled_, Names{});
}

// A table that was shipped without the kernels that it names.
TEST_F(TunedContext, WhereTheKernelOfTheTableIsMissingThatOfTheModelServes) {
  start()->gemm(rowwise(), gemm_args(m, n, k), stream);
  tune("128x96", m);
  compiled_.clear();
  cache::Options options = test::rooted(folder_.root());
  options.forbid_compile = true;
  const auto context = test::stub_context(options, compiler_);
  for (int i = 0; i < 2; ++i) context->gemm(rowwise(), gemm_args(m, n, k), stream);
  EXPECT_EQ(compiled_, Names{});
  EXPECT_THROW(context->gemm(rowwise(), gemm_args(1, n, k), stream), Error);  // nor is the model's there
}

TEST_F(TunedContext, WithoutAUsableTableTheModelChooses) {
  start()->gemm(rowwise(), gemm_args(m, n, k), stream);
  tune("128x96", m);
  std::ofstream(folder_.root() / "tuning.json") << "{";
  const test::Warnings warnings;
  const auto context = start();
  for (int i = 0; i < 3; ++i) context->gemm(rowwise(), gemm_args(m, n, k), stream);
  EXPECT_EQ(compiled_, Names{});
  EXPECT_EQ(warnings.count(), 1U);
}

// Nobody waits for the sink that is told of a bad table, neither its own thread nor another.
TEST_F(TunedContext, ASinkMayCallAndHoldsUpNobody) {
  start()->gemm(rowwise(), gemm_args(m, n, k), stream);
  std::ofstream(folder_.root() / "tuning.json") << "{";
  const auto context = start();
  const auto call = [&] { context->gemm(rowwise(), gemm_args(m, n, k), stream); };
  std::future<void> other;
  auto waited = std::future_status::deferred;
  set_log_sink([&](LogLevel, std::string_view) {
    other = std::async(std::launch::async, call);
    waited = other.wait_for(std::chrono::seconds(10));
    if (waited == std::future_status::ready) call();
  });
  call();
  set_log_sink({});
  EXPECT_EQ(waited, std::future_status::ready);
}

TEST_F(TunedContext, LoadingLoadsWhatCallsAskFor) {
  tune("128x96", m);
  {
    const auto context = start();
    context->load(problem::print(problem_of(rowwise(), gemm_args(m, n, k))));
    EXPECT_EQ(compiled_, Names{"128x96"});
    stub().capture = CU_STREAM_CAPTURE_STATUS_ACTIVE;
    EXPECT_NO_THROW(context->gemm(rowwise(), gemm_args(m, n, k), stream));
    stub().capture = CU_STREAM_CAPTURE_STATUS_NONE;
  }
}

// The table is read once, by the first GEMM; a warm call opens no file.
TEST_F(TunedContext, TheDiskIsAskedOnce) {
  tune("128x96", m);
  test::FaultyFiles files;
  const auto context = ContextAccess::make(
      driver::DeviceContext::primary(driver::stub_api(), 0), std::make_shared<driver::Libraries>(),
      std::make_shared<cache::Cache>(test::rooted(folder_.root()), cache::Seams{&files, compiler_}));
  EXPECT_EQ(files.calls, 0);
  context->gemm(rowwise(), gemm_args(m, n, k), stream);
  const int calls = files.calls;
  for (int i = 0; i < 10; ++i) context->gemm(rowwise(), gemm_args(m, n, k), stream);
  EXPECT_EQ(files.calls, calls);
}

}  // namespace
}  // namespace mxjit::dispatch
