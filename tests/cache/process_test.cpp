// Many processes on one root: races, kills, locks.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <random>
#include <thread>

#include "cache/key_lock.hpp"
#include "mxjit/error.hpp"
#include "support.hpp"

namespace mxjit::cache {
namespace {

using test::Call;
using test::expected_cubin;
using test::FakeCompiler;
using test::FaultyFiles;
using test::Folder;
using test::kernel;
using test::rooted;
using test::run_children;
namespace fs = std::filesystem;

bool all_zero(const std::vector<int>& results) {
  return std::all_of(results.begin(), results.end(), [](int result) { return result == 0; });
}

std::shared_ptr<FakeCompiler> tallying(const Folder& folder) {
  auto compiler = std::make_shared<FakeCompiler>();
  compiler->tally = folder.path() / "tally";
  compiler->delay = std::chrono::milliseconds(20);
  return compiler;
}

TEST(Processes, A1A13SixteenOnOneColdRootCompileOnce) {
  const Folder folder;
  const auto results = run_children(16, [&](int) {
    Cache cache = test::open(folder, tallying(folder));
    return cache.get(kernel())->cubin == expected_cubin(kernel()) ? 0 : 1;
  });
  EXPECT_TRUE(all_zero(results));
  EXPECT_EQ(test::tallied(folder.path() / "tally"), 1);
  test::only_entry(folder.root());
  EXPECT_TRUE(test::files_below(folder.root() / "tmp").empty());
  EXPECT_TRUE(test::files_below(folder.root() / "quarantine").empty());
}

TEST(Processes, A1ManyProcessesManyThreadsManyKeys) {
  const Folder folder;
  const int processes = test::long_tests() ? 64 : 12, keys = 6;
  const auto results = run_children(processes, [&](int child) {
    Cache cache = test::open(folder, tallying(folder));
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < keys; ++i) {
          const int index = (child + t + i) % keys;
          if (cache.get(kernel(index))->cubin != expected_cubin(kernel(index))) ++wrong;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    return wrong == 0 ? 0 : 1;
  });
  EXPECT_TRUE(all_zero(results));
  EXPECT_EQ(test::tallied(folder.path() / "tally"), keys);
}

TEST(Processes, A11A13WithoutLocksItIsMoreWorkAndAsRight) {
  const Folder folder;
  // Locks that are always granted, to everybody: a network file system whose locks stay on their node.
  class Generous : public FileSystem {
   public:
    int try_lock(int, std::uint64_t) override { return 0; }
  };
  Generous generous;
  for (const bool off : {false, true}) {
    fs::remove_all(folder.root());
    fs::remove(folder.path() / "tally");
    const auto results = run_children(8, [&](int) {
      Options options = rooted(folder.root());
      options.locks = !off;
      Cache cache(options, {&generous, tallying(folder)});
      return cache.get(kernel())->cubin == expected_cubin(kernel()) ? 0 : 1;
    });
    EXPECT_TRUE(all_zero(results));
    EXPECT_LE(test::tallied(folder.path() / "tally"), 8);
    test::only_entry(folder.root());
    EXPECT_TRUE(test::files_below(folder.root() / "tmp").empty());
  }
}

TEST(Processes, A2ReaderNeverSeesHalfAnEntry) {
  const Folder folder;
  const fs::path done = folder.path() / "done";
  fs::create_directory(folder.root());
  const auto results = run_children(4, [&](int child) {
    const auto start = std::chrono::steady_clock::now();
    const std::chrono::milliseconds enough(test::long_tests() ? 5000 : 500);
    auto compiler = std::make_shared<FakeCompiler>();
    int seen = 0;
    // The writer goes on until every reader has seen something, however slow the machine.
    const auto reading = [&] { return child == 0 ? test::tallied(done) < 3 : seen == 0; };
    const auto elapsed = [&] { return std::chrono::steady_clock::now() - start; };
    while (elapsed() < enough || (reading() && elapsed() < std::chrono::seconds(60))) {
      if (child == 0) {  // publishes the same entry again and again
        Options options = rooted(folder.root());
        options.locks = false;
        Cache writer(options, {nullptr, compiler});
        if (writer.find(kernel())) fs::remove(test::only_entry(folder.root()));
        writer.get(kernel());
        Cache(options, {nullptr, compiler}).prewarm(kernel());
      } else {
        Cache reader = test::open(folder, compiler);
        if (const auto entry = reader.find(kernel())) {
          if (entry->cubin != expected_cubin(kernel())) return 1;
          ++seen;
        }
        if (reader.counters().quarantined != 0 || reader.counters().refused != 0) return 2;
      }
    }
    if (child != 0) test::tally(done);
    return child == 0 || seen > 0 ? 0 : 3;
  });
  EXPECT_TRUE(all_zero(results));
}

// Kills the writer before its n-th call of the file system, for every n until it gets through.
TEST(Processes, A5WriterKilledAtEveryStepLeavesAUsableRoot) {
  const Folder folder;
  int survived = 0, step = 0;
  for (; survived == 0 && step < 100; ++step) {
    const auto results = run_children(1, [&](int) {
      int left = step;
      FaultyFiles files([&](Call, const std::string&) {
        if (left-- == 0) ::kill(::getpid(), SIGKILL);
        return 0;
      });
      Cache cache = test::open(folder, std::make_shared<FakeCompiler>(), &files);
      cache.get(kernel(step));
      return 0;
    });
    if (results[0] == 0) ++survived;
    const auto start = std::chrono::steady_clock::now();
    auto compiler = std::make_shared<FakeCompiler>();
    Cache cache = test::open(folder, compiler);
    ASSERT_EQ(cache.get(kernel(step))->cubin, expected_cubin(kernel(step))) << "step " << step;
    EXPECT_EQ(cache.counters().quarantined, 0U) << "step " << step;
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(1)) << "step " << step;  // A14
    ASSERT_TRUE(test::open(folder, compiler).verify(true).bad.empty());
  }
  EXPECT_EQ(survived, 1);
  EXPECT_GT(step, 12);  // the loop really went through a publication
}

TEST(Processes, A5RandomKills) {
  const Folder folder;
  std::mt19937 random(5);
  for (int i = 0; i < (test::long_tests() ? 1000 : 40); ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      for (int k = 0;; ++k) {
        Cache cache = test::open(folder);
        cache.get(kernel(k % 50));
        if (k % 50 == 49) cache.clear();
      }
    }
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 20000));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    Cache cache = test::open(folder);
    const int index = static_cast<int>(random() % 50);
    ASSERT_EQ(cache.get(kernel(index))->cubin, expected_cubin(kernel(index)));
    ASSERT_EQ(cache.counters().quarantined, 0U);
  }
  EXPECT_TRUE(test::open(folder).verify(true).bad.empty());
}

TEST(Processes, A14WaiterProceedsWhenTheHolderIsKilled) {
  const Folder folder;
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t holder = ::fork();
  if (holder == 0) {
    auto compiler = std::make_shared<FakeCompiler>();
    compiler->before = [&](const auto&) {
      const char byte = 0;
      if (::write(ready[1], &byte, 1) == 1) ::pause();
    };
    test::open(folder, compiler).get(kernel());
    ::_exit(0);
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  std::thread killer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    ::kill(holder, SIGKILL);
    ::waitpid(holder, nullptr, 0);
  });
  Cache cache = test::open(folder);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(cache.get(kernel())->cubin, expected_cubin(kernel()));
  const auto waited = std::chrono::steady_clock::now() - start;
  killer.join();
  EXPECT_GE(waited, std::chrono::milliseconds(80));
  EXPECT_LT(waited, std::chrono::milliseconds(1100));
  EXPECT_EQ(cache.counters().lock_waits, 1U);
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST(Locks, A15HolderThatNeverEndsIsNotWaitedForLong) {
  const Folder folder;
  fs::create_directory(folder.root());
  fs::permissions(folder.root(), fs::perms::owner_all);
  const KeyLock holder(host_files(), folder.root() / "lock", codegen::key(kernel()), std::chrono::seconds(0));
  ASSERT_TRUE(holder.held());
  Options options = rooted(folder.root());
  options.lock_wait = std::chrono::milliseconds(50);
  Cache cache(options, {nullptr, std::make_shared<FakeCompiler>()});
  EXPECT_EQ(cache.get(kernel())->cubin, expected_cubin(kernel()));
  EXPECT_EQ(cache.counters().lock_failures, 1U);
  EXPECT_EQ(cache.counters().publishes, 1U);
  EXPECT_EQ(cache.get(kernel(1))->cubin, expected_cubin(kernel(1)));  // another key's lock is free
  EXPECT_EQ(cache.counters().lock_failures, 1U);
}

TEST(Locks, A15A16LocksThatFailAreDoneWithout) {
  for (const int error : {ENOLCK, ENOSYS, EINVAL, EIO, EACCES}) {
    const Folder folder;
    FaultyFiles files([&](Call call, const std::string&) { return call == Call::try_lock ? -error : 0; });
    Cache cache = test::open(folder, std::make_shared<FakeCompiler>(), &files);
    EXPECT_EQ(cache.get(kernel())->cubin, expected_cubin(kernel()));
    EXPECT_EQ(cache.counters().publishes, 1U);
  }
  const Folder folder;  // the lock's file cannot even be opened
  FaultyFiles files([&](Call call, const std::string& path) {
    return call == Call::open && path.ends_with("/lock") ? -EROFS : 0;
  });
  Cache cache = test::open(folder, std::make_shared<FakeCompiler>(), &files);
  EXPECT_EQ(cache.get(kernel())->cubin, expected_cubin(kernel()));
}

TEST(Locks, ExcludeThreadsAndGoWithTheirOwner) {
  const Folder folder;
  const std::string path = folder.path() / "lock";
  const Digest key = codegen::key(kernel()), other = codegen::key(kernel(1));
  const std::chrono::milliseconds now(0);
  {
    const KeyLock first(host_files(), path, key, now);
    EXPECT_TRUE(first.held());
    EXPECT_FALSE(KeyLock(host_files(), path, key, now).held());
    EXPECT_TRUE(KeyLock(host_files(), path, other, now).held());
    EXPECT_FALSE(KeyLock(host_files(), path, key, now).held());  // closing another descriptor dropped nothing
  }
  EXPECT_TRUE(KeyLock(host_files(), path, key, now).held());
}

// A process forked while a lock is held keeps the file open for good; the lock must go nevertheless.
TEST(Locks, ForkedChildDoesNotKeepALock) {
  const Folder folder;
  const std::string path = folder.path() / "lock";
  const Digest key = codegen::key(kernel());
  pid_t child = 0;
  {
    const KeyLock lock(host_files(), path, key, std::chrono::milliseconds(0));
    ASSERT_TRUE(lock.held());
    child = ::fork();
    if (child == 0) {
      ::pause();
      ::_exit(0);
    }
  }
  EXPECT_TRUE(KeyLock(host_files(), path, key, std::chrono::milliseconds(0)).held());
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

// What is printed must not land in an entry whose file took a closed stream's number.
TEST(Processes, ClosedStandardStreams) {
  const Folder folder;
  const auto results = run_children(1, [&](int) {
    for (int fd = 0; fd < 3; ++fd) ::close(fd);
    FaultyFiles files([](Call call, const std::string&) {
      if (call == Call::sync && ::write(1, "noise", 5) > 0) return -EIO;
      return 0;
    });
    Cache cache = test::open(folder, std::make_shared<FakeCompiler>(), &files);
    return cache.get(kernel())->cubin == expected_cubin(kernel()) && cache.counters().publishes == 1 ? 0 : 1;
  });
  EXPECT_EQ(results[0], 0);
  EXPECT_TRUE(Cache(rooted(folder.root()), {}).verify(true).bad.empty());
}

TEST(Processes, A12TwoOwnersComeAndGo) {
  const Folder folder;
  Cache first = test::open(folder);
  first.get(kernel());
  const auto results = run_children(2, [&](int) {
    auto compiler = std::make_shared<FakeCompiler>();
    { test::open(folder, compiler).get(kernel()); }
    return compiler->compiles.load();
  });
  EXPECT_TRUE(all_zero(results));
  test::only_entry(folder.root());
}

}  // namespace
}  // namespace mxjit::cache
