// The log sink: levels, and sinks that throw, call the library or are replaced in the middle.
#include "base/log.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <latch>
#include <stdexcept>
#include <thread>
#include <vector>

#include "mxjit/error.hpp"
#include "unit/on_stub.hpp"

namespace mxjit {
namespace {

using Lines = std::vector<std::string>;

class Logging : public ::testing::Test {
 protected:
  void SetUp() override { ::unsetenv("MXJIT_LOG"); }
  void TearDown() override {
    ::unsetenv("MXJIT_LOG");
    set_log_sink({});
  }
  LogSink collect() {
    return [this](LogLevel level, std::string_view line) {
      lines_.push_back(std::string(to_string(level)) + " " + std::string(line));
    };
  }
  void log_all() {
    lines_.clear();
    for (const LogLevel level : {LogLevel::error, LogLevel::warn, LogLevel::info, LogLevel::debug})
      log(level, "x");
  }
  Lines lines_;
};

TEST_F(Logging, LevelsIncludeTheMoreUrgent) {
  const Lines all = {"error x", "warn x", "info x", "debug x"};
  for (std::size_t i = 0; i < all.size(); ++i) {
    set_log_sink(collect(), static_cast<LogLevel>(i));
    log_all();
    EXPECT_EQ(lines_, Lines(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(i) + 1));
    EXPECT_EQ(logs(LogLevel::debug), i == 3);
  }
  set_log_sink({});
  log_all();
  EXPECT_EQ(lines_, Lines());
  EXPECT_FALSE(logs(LogLevel::error));
}

TEST_F(Logging, TheEnvironmentDecidesWhereTheCallerDoesNot) {
  set_log_sink(collect());
  log_all();
  EXPECT_EQ(lines_, (Lines{"error x", "warn x"}));
  ::setenv("MXJIT_LOG", "info", 1);
  set_log_sink(collect());
  log_all();
  EXPECT_EQ(lines_, (Lines{"error x", "warn x", "info x"}));
  set_log_sink(collect(), LogLevel::error);
  log_all();
  EXPECT_EQ(lines_, (Lines{"error x"}));
}

TEST_F(Logging, AnUnknownLevelIsAnErrorAndLeavesTheSink) {
  set_log_sink(collect(), LogLevel::warn);
  ::setenv("MXJIT_LOG", "loud", 1);
  try {
    set_log_sink([](LogLevel, std::string_view) { FAIL(); });
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_EQ(error.argument(), "MXJIT_LOG");
    EXPECT_NE(std::string(error.what()).find("\"loud\""), std::string::npos) << error.what();
  }
  log_all();
  EXPECT_EQ(lines_.size(), 2U);
  EXPECT_NO_THROW(set_log_sink({}));  // nobody asks for a level
}

TEST_F(Logging, WhatASinkThrowsIsDropped) {
  int calls = 0;
  set_log_sink([&](LogLevel, std::string_view) {
    if (++calls == 1) throw std::runtime_error("no");
    throw 7;  // NOLINT
  });
  EXPECT_NO_THROW(log(LogLevel::error, "x"));
  EXPECT_NO_THROW(log(LogLevel::error, "x"));
  EXPECT_EQ(calls, 2);
}

TEST_F(Logging, LinesFromWithinASinkAreDropped) {
  int calls = 0;
  set_log_sink([&](LogLevel, std::string_view) {
    ++calls;
    EXPECT_FALSE(logs(LogLevel::error));
    log(LogLevel::error, "again");
  });
  log(LogLevel::error, "x");
  log(LogLevel::error, "x");
  EXPECT_EQ(calls, 2);
}

// The kernel that a line tells of is asked for by the sink: it must not wait for the call that logs.
TEST_F(Logging, ASinkMayCallTheLibrary) {
  driver::stub().reset();
  driver::stub_api().ctx_set_current(nullptr);
  const auto context = test::stub_context();
  int calls = 0;
  set_log_sink(
      [&](LogLevel, std::string_view) {
        ++calls;
        context->quantize({}, test::row_args(100, 200), nullptr);
        context->plan(test::rowwise(), test::gemm_args(128, 512, 256));
      },
      LogLevel::debug);
  context->quantize({}, test::row_args(100, 200), nullptr);
  EXPECT_GE(calls, 2);  // compiled, loaded
  EXPECT_EQ(driver::stub().launches, static_cast<std::uint64_t>(calls) + 1);
  EXPECT_EQ(context->statistics().compiles, 2U);
}

TEST_F(Logging, LinesHeldBackComeInOrderAfterTheOutermost) {
  set_log_sink(collect(), LogLevel::debug);
  {
    const HeldLog outer;
    log(LogLevel::info, "1");
    {
      const HeldLog inner;
      log(LogLevel::debug, "2");
    }
    EXPECT_EQ(lines_, Lines());
  }
  EXPECT_EQ(lines_, (Lines{"info 1", "debug 2"}));
}

TEST_F(Logging, ASinkMayReplaceItself) {
  auto alive = std::make_shared<int>(1);
  const std::weak_ptr<int> watch = alive;
  set_log_sink([this, alive](LogLevel, std::string_view) {
    set_log_sink(collect());
    lines_.push_back(std::to_string(*alive));  // still here
  });
  alive.reset();
  log(LogLevel::error, "x");
  EXPECT_TRUE(watch.expired());
  log(LogLevel::error, "y");
  EXPECT_EQ(lines_, (Lines{"1", "error y"}));
}

TEST_F(Logging, ReplacingWaitsForCallsInOtherThreads) {
  std::latch inside(1), leave(1);
  std::atomic<bool> entered = false, left = false, replaced = false;
  auto alive = std::make_shared<int>(1);
  const std::weak_ptr<int> watch = alive;
  set_log_sink([&, alive](LogLevel, std::string_view) {
    if (entered.exchange(true)) return;
    inside.count_down();
    leave.wait();
    EXPECT_FALSE(replaced);
    left = true;
  });
  alive.reset();
  std::jthread logging([] { log(LogLevel::error, "x"); });
  inside.wait();
  std::jthread replacing([&] {
    set_log_sink(collect());
    replaced = true;
    EXPECT_TRUE(left);
    EXPECT_TRUE(watch.expired());
  });
  // Lines of others go to the new sink as soon as it is there, and wait for nobody.
  while (lines_.empty()) log(LogLevel::error, "y");
  EXPECT_FALSE(replaced);
  leave.count_down();
}

TEST_F(Logging, ManyThreadsLogWhileSinksComeAndGo) {
  std::atomic<bool> stop = false;
  std::atomic<int> heard = 0;
  std::vector<std::jthread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      while (!stop) {
        log(LogLevel::error, "x");
        std::this_thread::yield();
      }
    });
  for (int i = 0; i < 100 || heard < 20; ++i) {
    auto owned = std::make_unique<std::atomic<int>>(0);
    set_log_sink([&heard, to = owned.get()](LogLevel, std::string_view) {
      ++*to;
      ++heard;
    });
    std::this_thread::yield();
    set_log_sink({});
    owned.reset();  // nobody writes to it any more: a sanitizer would tell
  }
  stop = true;
}

}  // namespace
}  // namespace mxjit
