// What a cache says that it did: every counter, and time.
#include <gtest/gtest.h>

#include <cerrno>
#include <thread>

#include "cache/store.hpp"
#include "mxjit/error.hpp"
#include "support.hpp"

namespace mxjit::cache {
namespace {

using test::Call;
using test::FakeCompiler;
using test::FaultyFiles;
using test::Folder;
using test::kernel;
using test::rooted;
namespace fs = std::filesystem;

TEST(StatisticsTest, HitsAreCountedWhereTheyEnd) {
  const Folder folder;
  const auto compiler = std::make_shared<FakeCompiler>();
  const fs::path bundle = folder.path() / "two.bundle", directory = folder.path() / "directory";
  {
    Cache maker(rooted(directory), {nullptr, compiler});
    maker.get(kernel(2));
    maker.export_bundle(bundle);
    maker.clear();
    maker.get(kernel(1));
    Cache(rooted(folder.root()), {nullptr, compiler}).get(kernel(0));
  }
  Options options = rooted(folder.root());
  options.layers = {directory, folder.path() / "missing", bundle};
  Cache cache(options, {nullptr, compiler});
  for (int i = 0; i < 4; ++i) cache.get(kernel(i));
  cache.get(kernel(2));
  cache.get(kernel(2));
  const Statistics told = cache.statistics();
  EXPECT_EQ(told.memory_hits, 2U);
  EXPECT_EQ(told.root_hits, 1U);
  ASSERT_EQ(told.layers.size(), 3U);
  EXPECT_EQ(told.layers[0].path, directory);
  EXPECT_EQ(told.layers[2].path, bundle);
  EXPECT_EQ(told.layers[0].hits, 1U);
  EXPECT_EQ(told.layers[1].hits, 0U);
  EXPECT_EQ(told.layers[2].hits, 1U);
  EXPECT_EQ(told.layer_hits(), 2U);
  EXPECT_EQ(told.hits(), 5U);
  EXPECT_EQ(told.compiles, 1U);
  EXPECT_EQ(told.publishes, 1U);
  EXPECT_EQ(told.loads, 0U);
  EXPECT_EQ(told.refused, 2U);  // the layer that is missing, each time it is asked
  for (const std::uint64_t none : {told.compile_failures, told.publish_failures, told.quarantined,
                                   told.evicted, told.lock_waits, told.lock_failures})
    EXPECT_EQ(none, 0U);
}

TEST(StatisticsTest, FailuresAreCounted) {
  const Folder folder;
  const auto compiler = std::make_shared<FakeCompiler>();
  compiler->before = [](const auto&) { throw Error(ErrorCode::compile_failed, "no"); };
  FaultyFiles full([](Call call, const std::string&) { return call == Call::write ? -ENOSPC : 0; });
  Cache cache(rooted(folder.root()), {&full, compiler});
  EXPECT_THROW(cache.get(kernel()), Error);
  EXPECT_THROW(cache.get(kernel()), Error);
  compiler->before = nullptr;
  const test::Warnings warnings;
  cache.get(kernel(0));
  cache.get(kernel(1));
  Statistics told = cache.statistics();
  EXPECT_EQ(told.compile_failures, 2U);
  EXPECT_EQ(told.compiles, 2U);
  EXPECT_EQ(told.publish_failures, 2U);
  EXPECT_EQ(told.publishes, 0U);
  EXPECT_EQ(warnings.count(), 1U);

  full.set_hook({});
  for (int i = 0; i < 3; ++i) cache.prewarm(kernel(i));
  EXPECT_EQ(cache.collect(UINT64_MAX, 1).entries, 2U);
  told = cache.statistics();
  EXPECT_EQ(told.publishes, 3U);
  EXPECT_EQ(told.evicted, 2U);

  test::write_bytes(test::only_entry(folder.root()), "junk");
  Cache again(rooted(folder.root()), {nullptr, compiler});
  for (int i = 0; i < 3; ++i) again.get(kernel(i));
  EXPECT_EQ(again.statistics().quarantined, 1U);
  Options layered;
  layered.layers = {folder.root()};
  test::write_bytes(
      *fs::directory_iterator(Store(host_files(), folder.root(), false).folder_of(codegen::key(kernel()))),
      "junk");
  Cache reader(layered, {nullptr, compiler});
  reader.get(kernel());
  EXPECT_EQ(reader.statistics().refused, 1U);
}

TEST(StatisticsTest, TimeIsThatOfTheStepItIsSpentIn) {
  using std::chrono::milliseconds;
  const Folder folder;
  const auto compiler = std::make_shared<FakeCompiler>();
  compiler->delay = milliseconds(20);
  milliseconds reading{0}, writing{0};
  FaultyFiles slow([&](Call call, const std::string&) {
    if (call == Call::read) std::this_thread::sleep_for(reading);
    if (call == Call::write) std::this_thread::sleep_for(writing);
    return 0;
  });
  writing = milliseconds(30);
  Cache cold(rooted(folder.root()), {&slow, compiler});
  cold.get(kernel());
  Statistics told = cold.statistics();
  EXPECT_GE(told.compile_time, milliseconds(20));
  EXPECT_GE(told.publish_time, milliseconds(30));
  EXPECT_LT(told.look_up_time, told.publish_time);
  reading = milliseconds(30);
  Cache warm(rooted(folder.root()), {&slow, compiler});
  warm.get(kernel());
  told = warm.statistics();
  EXPECT_GE(told.look_up_time, milliseconds(30));
  EXPECT_EQ(told.compile_time.count(), 0);
  EXPECT_EQ(told.publish_time.count(), 0);
}

}  // namespace
}  // namespace mxjit::cache
