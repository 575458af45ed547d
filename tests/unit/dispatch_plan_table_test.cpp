// The table of plans: what is found, what is built, and by whom, from one thread and from many.
#include "dispatch/plan_table.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <compare>
#include <latch>
#include <stdexcept>
#include <thread>
#include <vector>

namespace mxjit::dispatch {
namespace {

struct Key {
  std::uint64_t value = 0;
  std::uint64_t hash() const noexcept { return value % 7; }  // collides on purpose
  friend auto operator<=>(const Key&, const Key&) = default;
};
using Table = PlanTable<Key, std::uint64_t>;

std::shared_ptr<const std::uint64_t> made(std::uint64_t value) {
  return std::make_shared<const std::uint64_t>(value);
}

TEST(PlanTable, FindsWhatWasMadeThroughCollisionsAndGrowth) {
  Table table;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    EXPECT_EQ(table.find({i}), nullptr);
    table.get({i}, [&] { return made(i * 3); });
  }
  EXPECT_EQ(table.size(), 1000U);
  for (std::uint64_t i = 0; i < 1000; ++i) {
    const auto* found = table.find({i});
    ASSERT_NE(found, nullptr);
    EXPECT_EQ(**found, i * 3);
  }
  EXPECT_EQ(table.find({1000}), nullptr);
}

TEST(PlanTable, MakesAKeyOnce) {
  Table table;
  int builds = 0;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(*table.get({5}, [&] { return ++builds, made(50); }), 50U);
  EXPECT_EQ(builds, 1);
}

TEST(PlanTable, AnErrorReachesTheCallerAndIsNotKept) {
  Table table;
  try {
    table.get({1}, []() -> std::shared_ptr<const std::uint64_t> {
      throw Error(ErrorCode::compile_failed, "no good", "x");
    });
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::compile_failed);
  }
  EXPECT_THROW(
      table.get({1}, []() -> std::shared_ptr<const std::uint64_t> { throw std::runtime_error("other"); }),
      std::runtime_error);
  EXPECT_EQ(*table.get({1}, [] { return made(9); }), 9U);
}

TEST(PlanTable, SixtyFourThreadsOnOneKeyBuildOnce) {
  Table table;
  std::atomic<int> builds{0};
  std::barrier start(64);
  std::vector<std::jthread> threads;
  for (int i = 0; i < 64; ++i)
    threads.emplace_back([&] {
      start.arrive_and_wait();
      const auto value = table.get({42}, [&] {
        ++builds;
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        return made(7);
      });
      EXPECT_EQ(*value, 7U);
    });
  threads.clear();
  EXPECT_EQ(builds, 1);
}

TEST(PlanTable, WaitersGetTheBuildersError) {
  Table table;
  std::atomic<int> builds{0}, errors{0};
  std::barrier start(8);
  std::vector<std::jthread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&] {
      start.arrive_and_wait();
      try {
        table.get({42}, [&]() -> std::shared_ptr<const std::uint64_t> {
          ++builds;
          std::this_thread::sleep_for(std::chrono::milliseconds(50));
          throw Error(ErrorCode::compile_forbidden, "not here", "problem");
        });
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::compile_forbidden);
        EXPECT_STREQ(error.what(), "not here");
        EXPECT_EQ(error.argument(), "problem");
        ++errors;
      }
    });
  threads.clear();
  EXPECT_EQ(errors, 8);
  EXPECT_GE(builds, 1);
}

TEST(PlanTable, HitsAndOtherKeysDoNotWaitForABuild) {
  Table table;
  table.get({1}, [] { return made(1); });
  std::latch building(1), release(1);
  std::jthread slow([&] {
    table.get({2}, [&] {
      building.count_down();
      release.wait();
      return made(2);
    });
  });
  building.wait();
  // Would never return if either waited for the build above, which ends only below.
  EXPECT_EQ(**table.find({1}), 1U);
  EXPECT_EQ(*table.get({1}, [] { return made(0); }), 1U);
  EXPECT_EQ(*table.get({3}, [] { return made(3); }), 3U);
  EXPECT_EQ(table.find({2}), nullptr);
  release.count_down();
  slow.join();
  EXPECT_EQ(**table.find({2}), 2U);
}

TEST(PlanTable, AnAdoptedValueStaysAndWinsOverABuild) {
  Table table;
  EXPECT_EQ(*table.adopt({1}, made(5)), 5U);
  EXPECT_EQ(*table.adopt({1}, made(6)), 5U);
  EXPECT_EQ(*table.get({1}, [] { return made(7); }), 5U);
  // Adopted while a build of the same key is under way: adopt does not wait, and the builder gets what is
  // there.
  const auto built = table.get({2}, [&] {
    EXPECT_EQ(*table.adopt({2}, made(8)), 8U);
    return made(9);
  });
  EXPECT_EQ(*built, 8U);
  EXPECT_EQ(**table.find({2}), 8U);
  EXPECT_EQ(table.size(), 2U);
}

TEST(PlanTable, ReadersRaceWithGrowth) {
  Table table;
  constexpr std::uint64_t keys = 2000;
  std::atomic<bool> stop{false};
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      std::uint64_t hits = 0;
      while (!stop.load(std::memory_order_relaxed))
        for (std::uint64_t key = 0; key < keys; key += 97)
          if (const auto* found = table.find({key})) {
            ASSERT_EQ(**found, key);
            ++hits;
          }
      EXPECT_GT(hits, 0U);
    });
  for (std::uint64_t key = 0; key < keys; ++key) table.get({key}, [&] { return made(key); });
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  stop = true;
}

}  // namespace
}  // namespace mxjit::dispatch
