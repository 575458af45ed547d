// What get, find and prewarm give, in one process: layers, builds, counters, threads.
#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "cache/cache.hpp"
#include "mxjit/error.hpp"
#include "support.hpp"

namespace mxjit::cache {
namespace {

using test::expected_cubin;
using test::FakeCompiler;
using test::Folder;
using test::kernel;
using test::rooted;

struct Bench {
  std::shared_ptr<FakeCompiler> compiler = std::make_shared<FakeCompiler>();
  Cache open(const Options& options) { return Cache(options, {nullptr, compiler}); }
};

TEST(Lookup, CompilesOnceThenHitsMemoryThenTheRoot) {
  const Folder folder;
  Bench bench;
  {
    Cache cache = bench.open(rooted(folder.root()));
    EXPECT_EQ(cache.find(kernel()), nullptr);
    EXPECT_EQ(cache.get(kernel())->cubin, expected_cubin(kernel()));
    EXPECT_EQ(cache.get(kernel())->cubin, expected_cubin(kernel()));
    EXPECT_EQ(cache.counters().compiles, 1U);
    EXPECT_EQ(cache.counters().publishes, 1U);
    EXPECT_EQ(cache.counters().memory_hits, 1U);
  }
  Cache again = bench.open(rooted(folder.root()));  // A12: the last owner left the entry where it was
  EXPECT_EQ(again.get(kernel())->cubin, expected_cubin(kernel()));
  EXPECT_EQ(again.counters().root_hits, 1U);
  EXPECT_EQ(bench.compiler->compiles, 1);
}

TEST(Lookup, A3NoFileIsSharedByTwoKeys) {
  const Folder folder;
  Bench bench;
  Cache cache = bench.open(rooted(folder.root()));
  cache.get(kernel(1));
  const auto first = test::files_below(folder.root());
  const std::string image = test::read_bytes(test::only_entry(folder.root()));
  cache.get(kernel(2));
  EXPECT_EQ(test::files_below(folder.root()).size(), first.size() + 1);
  for (const std::string& file : first) {
    if (!file.ends_with(".kernel")) continue;
    EXPECT_EQ(test::read_bytes(folder.root() / file), image);
  }
  EXPECT_EQ(test::read_bytes(folder.root() / "lock"), "");  // holds no data
}

TEST(Lookup, NoRootIsMemoryOnly) {
  Bench bench;
  Cache cache = bench.open({});
  EXPECT_EQ(cache.get(kernel())->cubin, expected_cubin(kernel()));
  EXPECT_EQ(cache.get(kernel())->cubin, expected_cubin(kernel()));
  EXPECT_EQ(bench.compiler->compiles, 1);
  EXPECT_EQ(cache.counters().publish_failures, 0U);
  EXPECT_THROW(cache.prewarm(kernel()), Error);
}

TEST(Lookup, A24TwoTargetsLiveSideBySide) {
  const Folder folder;
  Bench bench;
  Cache cache = bench.open(rooted(folder.root()));
  cache.get(kernel(0, "sm_90a"));
  cache.get(kernel(0, "sm_100a"));
  Cache again = bench.open(rooted(folder.root()));
  EXPECT_EQ(again.find(kernel(0, "sm_90a"))->cubin, expected_cubin(kernel(0, "sm_90a")));
  EXPECT_EQ(again.find(kernel(0, "sm_100a"))->cubin, expected_cubin(kernel(0, "sm_100a")));
}

TEST(Lookup, A27RootNeedsTheBuildOfTheCompilerHere) {
  const Folder folder;
  Bench bench;
  bench.open(rooted(folder.root())).get(kernel());
  Bench newer;
  newer.compiler->name = "compiler-2";
  newer.compiler->build = "13.1.5";
  Cache cache = newer.open(rooted(folder.root()));
  EXPECT_EQ(cache.find(kernel()), nullptr);
  EXPECT_EQ(cache.get(kernel())->build, "13.1.5");
  EXPECT_EQ(newer.compiler->compiles, 1);
  EXPECT_EQ(bench.open(rooted(folder.root())).find(kernel())->build, "13.0.88");  // each finds its own
}

TEST(Lookup, A27WithoutACompilerTheNewestBuildIsUsed) {
  const Folder folder;
  for (const char* build : {"12.9.41", "13.0.88", "13.0.9"}) {
    Bench bench;
    bench.compiler->name = build;
    bench.compiler->build = build;
    bench.open(rooted(folder.root())).get(kernel());
  }
  Bench none;
  none.compiler->name = "";
  Cache cache = none.open(rooted(folder.root()));
  EXPECT_EQ(cache.get(kernel())->build, "13.0.88");
  Options forbidden = rooted(folder.root());
  forbidden.forbid_compile = true;
  Bench other;
  other.compiler->name = "compiler-9";
  Cache offline = other.open(forbidden);
  EXPECT_EQ(offline.get(kernel())->build, "13.0.88");
  EXPECT_EQ(offline.explain(kernel()).build, "13.0.88");
  EXPECT_EQ(other.compiler->compiles, 0);
}

TEST(Lookup, A27ReadOnlyLayerMayBeOfAnotherBuild) {
  const Folder folder;
  Bench builder;
  builder.open(rooted(folder.path() / "shipped")).get(kernel());
  Bench here;
  here.compiler->name = "compiler-2";
  Options options = rooted(folder.root());
  options.layers = {folder.path() / "absent", folder.path() / "shipped"};
  Cache cache = here.open(options);
  EXPECT_EQ(cache.get(kernel())->cubin, expected_cubin(kernel()));
  EXPECT_EQ(cache.counters().layer_hits, 1U);
  EXPECT_EQ(here.compiler->compiles, 0);
  EXPECT_FALSE(test::fs::exists(folder.root()));  // nothing was compiled, so nothing is written
}

TEST(Lookup, RootComesBeforeLayersAndLayersKeepTheirOrder) {
  const Folder folder;
  for (const char* name : {"one", "two"}) {
    Bench bench;
    bench.compiler->build = name == std::string("one") ? "12.0.1" : "13.0.2";
    bench.compiler->name = name;
    bench.open(rooted(folder.path() / name)).get(kernel());
  }
  Bench here;
  Options options;
  options.layers = {folder.path() / "one", folder.path() / "two"};
  EXPECT_EQ(here.open(options).get(kernel())->build, "12.0.1");
  std::swap(options.layers[0], options.layers[1]);
  EXPECT_EQ(here.open(options).get(kernel())->build, "13.0.2");
  options.root = folder.root();
  here.open(rooted(folder.root())).get(kernel());
  EXPECT_EQ(here.open(options).get(kernel())->compiler, "compiler-1");
}

TEST(Lookup, PrewarmStoresAndThenCompilesNothing) {
  const Folder folder;
  Bench bench;
  Cache cache = bench.open(rooted(folder.root()));
  EXPECT_TRUE(cache.prewarm(kernel()));
  EXPECT_FALSE(cache.prewarm(kernel()));
  Cache again = bench.open(rooted(folder.root()));
  EXPECT_FALSE(again.prewarm(kernel()));
  EXPECT_EQ(bench.compiler->compiles, 1);
}

TEST(Lookup, PrewarmStoresWhatAnotherLayerHolds) {
  const Folder folder;
  Bench builder;
  builder.open(rooted(folder.path() / "shipped")).get(kernel());
  Bench here;
  here.compiler->name = "compiler-2";
  Options options = rooted(folder.root());
  options.layers = {folder.path() / "shipped"};
  Cache cache = here.open(options);
  EXPECT_FALSE(cache.prewarm(kernel()));
  EXPECT_EQ(here.compiler->compiles, 0);
  EXPECT_EQ(cache.list().size(), 1U);
  EXPECT_FALSE(here.open(options).prewarm(kernel()));
}

TEST(Lookup, FailedCompilationIsTriedAgain) {
  const Folder folder;
  Bench bench;
  bench.compiler->before = [&](const auto&) {
    if (bench.compiler->compiles == 1) throw Error(ErrorCode::compile_failed, "no");
  };
  Cache cache = bench.open(rooted(folder.root()));
  EXPECT_THROW(cache.get(kernel()), Error);
  EXPECT_EQ(cache.get(kernel())->cubin, expected_cubin(kernel()));
  EXPECT_EQ(cache.counters().compiles, 1U);
}

TEST(Lookup, A13ThreadsCompileAKeyOnce) {
  const Folder folder;
  Bench bench;
  bench.compiler->delay = std::chrono::milliseconds(30);
  Cache cache = bench.open(rooted(folder.root()));
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  for (int i = 0; i < 64; ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < 20; ++round) {
        const int index = (i + round) % 5;
        if (cache.get(kernel(index))->cubin == expected_cubin(kernel(index))) ++right;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 64 * 20);
  EXPECT_EQ(bench.compiler->compiles, 5);
}

TEST(Lookup, EveryWaiterOfAFailureHearsOfIt) {
  Bench bench;
  bench.compiler->delay = std::chrono::milliseconds(0);
  bench.compiler->before = [](const auto&) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    throw Error(ErrorCode::compile_failed, "no such luck");
  };
  Cache cache = bench.open({});
  std::vector<std::thread> threads;
  std::atomic<int> heard{0};
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      try {
        cache.get(kernel());
      } catch (const Error& error) {
        if (error.what() == std::string("no such luck")) ++heard;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(heard, 8);
}

TEST(Lookup, A47HitsDoNotWaitForAnotherKey) {
  const Folder folder;
  Bench bench;
  Cache cache = bench.open(rooted(folder.root()));
  cache.get(kernel(1));
  bench.open(rooted(folder.root())).get(kernel(2));  // in the root, not in this cache's memory
  std::promise<void> started, finish;
  bench.compiler->before = [&](const codegen::KernelDescriptor&) {
    started.set_value();
    finish.get_future().wait();
  };
  std::thread slow([&] { cache.get(kernel(0)); });
  started.get_future().wait();
  std::vector<double> microseconds;
  for (int i = 0; i < 200; ++i) {
    const auto start = std::chrono::steady_clock::now();
    cache.get(kernel(1));
    microseconds.push_back(
        std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count());
  }
  EXPECT_NE(cache.find(kernel(2)), nullptr);  // and a first hit on the disk gets through
  std::sort(microseconds.begin(), microseconds.end());
  // While the slow one still compiles. Wide of the 50 us that an idle machine shows: sanitizers run this too.
  EXPECT_LT(microseconds[100], 2000.0);
  finish.set_value();
  slow.join();
}

TEST(Lookup, A21NothingIsTouchedBeforeFirstUse) {
  const Folder folder;
  test::FaultyFiles files;
  Options options = rooted(folder.root());
  options.layers = {folder.path() / "bundle"};
  Bench bench;
  const Cache cache(options, {&files, bench.compiler});
  EXPECT_EQ(files.calls, 0);
  EXPECT_FALSE(test::fs::exists(folder.root()));
}

TEST(Lookup, A54WarmStartMakesFewCalls) {
  const Folder folder;
  Bench bench;
  Cache writer = bench.open(rooted(folder.root()));
  constexpr int kernels = 20;
  for (int i = 0; i < kernels; ++i) writer.get(kernel(i));
  std::atomic<int> slow{0};
  test::FaultyFiles files([&](test::Call call, const std::string&) {
    if (call == test::Call::open || call == test::Call::status) ++slow;
    return 0;
  });
  Cache reader(rooted(folder.root()), {&files, bench.compiler});
  for (int i = 0; i < kernels; ++i) reader.get(kernel(i));
  EXPECT_EQ(bench.compiler->compiles, kernels);
  // open, status, read, close for each, and one look at the root.
  EXPECT_LE(files.calls, 4 * kernels + 1);
  EXPECT_LE(slow, 2 * kernels + 1);
}

TEST(Lookup, A31SecondStartCompilesNothing) {
  const Folder volume;
  Bench first;
  for (int i = 0; i < 5; ++i) first.open(rooted(volume.root())).get(kernel(i));
  // What a new container sees: other times, another path.
  test::fs::rename(volume.root(), volume.path() / "mounted elsewhere");
  for (const std::string& file : test::files_below(volume.path() / "mounted elsewhere")) {
    test::fs::last_write_time(volume.path() / "mounted elsewhere" / file,
                              test::fs::file_time_type::clock::now() - std::chrono::hours(24 * 400));
  }
  Bench second;
  Cache cache = second.open(rooted(volume.path() / "mounted elsewhere"));
  for (int i = 0; i < 5; ++i) EXPECT_EQ(cache.get(kernel(i))->cubin, expected_cubin(kernel(i)));
  EXPECT_EQ(second.compiler->compiles, 0);
}

TEST(Lookup, A50OddPathsWork) {
  const Folder folder;
  Bench bench;
  const auto root = folder.path() / "a b" / "\xc3\xbc'$x;\"%s\n";
  EXPECT_EQ(bench.open(rooted(root)).get(kernel())->cubin, expected_cubin(kernel()));
  EXPECT_NE(bench.open(rooted(root)).find(kernel()), nullptr);
}

TEST(Lookup, RelativeRootStaysWhereItWas) {
  const Folder folder;
  Bench bench;
  const auto before = test::fs::current_path();
  test::fs::create_directory(folder.path() / "elsewhere");
  test::fs::current_path(folder.path());
  Cache cache = bench.open(rooted("root"));
  test::fs::current_path(folder.path() / "elsewhere");
  cache.get(kernel());
  test::fs::current_path(before);
  test::only_entry(folder.root());
}

TEST(Lookup, A53ForbiddenReplayAfterPrewarmCompilesNothing) {
  const Folder folder;
  Bench build_machine;
  Cache prewarmed = build_machine.open(rooted(folder.root()));
  for (int i = 0; i < 30; ++i) prewarmed.prewarm(kernel(i));
  Options options = rooted(folder.root());
  options.forbid_compile = true;
  Bench server;
  server.compiler->name = "";
  Cache cache = server.open(options);
  for (int i = 0; i < 1000; ++i)
    EXPECT_EQ(cache.get(kernel(i * 7 % 30))->cubin, expected_cubin(kernel(i * 7 % 30)));
  EXPECT_EQ(server.compiler->compiles, 0);
  EXPECT_EQ(cache.counters().root_hits, 30U);
}

}  // namespace
}  // namespace mxjit::cache
