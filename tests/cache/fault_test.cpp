// Damage, full disks, forbidden folders and network file systems: the kernel still runs.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <random>
#include <thread>

#include "cache/store.hpp"
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
namespace fs = std::filesystem;

class FaultTest : public testing::Test {
 protected:
  // A root that holds one sound entry.
  void fill() { test::open(folder_, compiler_).get(kernel()); }
  // Whoever looks for it in a new process must get it right, and the one after that from the disk.
  void expect_rebuilt(const char* what) {
    const int before = compiler_->compiles;
    {
      Cache cache = test::open(folder_, compiler_);
      ASSERT_EQ(cache.get(kernel())->cubin, expected_cubin(kernel())) << what;
    }
    EXPECT_EQ(compiler_->compiles, before + 1) << what;
    Cache cache = test::open(folder_, compiler_);
    ASSERT_EQ(cache.get(kernel())->cubin, expected_cubin(kernel())) << what;
    EXPECT_EQ(compiler_->compiles, before + 1) << what << ": not stored again";
  }

  Folder folder_;
  std::shared_ptr<FakeCompiler> compiler_ = std::make_shared<FakeCompiler>();
};

TEST_F(FaultTest, A17TruncatedEntriesAreRebuilt) {
  fill();
  const fs::path entry = test::only_entry(folder_.root());
  const std::string image = test::read_bytes(entry);
  const std::size_t step = test::long_tests() ? 1 : 37;
  for (std::size_t length = 0; length < image.size(); length += step) {
    test::write_bytes(entry, std::string_view(image).substr(0, length));
    expect_rebuilt("truncated");
    if (HasFatalFailure()) return;
  }
}

TEST_F(FaultTest, A17FlippedBitsAreRebuilt) {
  fill();
  const fs::path entry = test::only_entry(folder_.root());
  const std::string image = test::read_bytes(entry);
  std::mt19937 random(64);
  for (int i = 0; i < (test::long_tests() ? 1000 : 64); ++i) {
    std::string damaged = image;
    const std::size_t bit = random() % (8 * image.size());
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    test::write_bytes(entry, damaged);
    expect_rebuilt("flipped");
    if (HasFatalFailure()) return;
  }
}

TEST_F(FaultTest, A17BadEntryIsSetAsideOnceWithOneWarning) {
  fill();
  const fs::path entry = test::only_entry(folder_.root());
  test::write_bytes(entry, "junk");
  const test::Warnings warnings;
  Cache cache = test::open(folder_, compiler_);
  cache.get(kernel());
  cache.get(kernel());
  EXPECT_EQ(cache.counters().quarantined, 1U);
  EXPECT_EQ(warnings.count(), 1U);
  const auto files = test::files_below(folder_.root() / "quarantine");
  ASSERT_EQ(files.size(), 1U);
  EXPECT_EQ(test::read_bytes(folder_.root() / "quarantine" / files[0]), "junk");
}

TEST_F(FaultTest, A25RenamedEntryIsRejectedByItsContent) {
  test::open(folder_, compiler_).get(kernel(0, "sm_100a"));
  const fs::path foreign = test::only_entry(folder_.root());
  const Store store(host_files(), folder_.root(), false);
  const fs::path target = store.path_of(codegen::key(kernel()), compiler_->name);
  fs::create_directories(target.parent_path());
  fs::rename(foreign, target);
  expect_rebuilt("renamed");
}

TEST_F(FaultTest, A18DirectoryInPlaceOfAnEntry) {
  fill();
  const fs::path entry = test::only_entry(folder_.root());
  fs::remove(entry);
  fs::create_directories(entry / "not empty");
  expect_rebuilt("directory");
}

TEST_F(FaultTest, A18FifoInPlaceOfAnEntryDoesNotHang) {
  fill();
  const fs::path entry = test::only_entry(folder_.root());
  fs::remove(entry);
  ASSERT_EQ(::mkfifo(entry.c_str(), 0600), 0);
  expect_rebuilt("FIFO");
}

TEST_F(FaultTest, A18DanglingSymlinkInPlaceOfAnEntry) {
  fill();
  const fs::path entry = test::only_entry(folder_.root());
  fs::remove(entry);
  fs::create_symlink("/nowhere/at/all", entry);
  expect_rebuilt("symlink");
}

// Root may read anything, so the refusal comes from the seam.
TEST_F(FaultTest, A22UnreadableEntryIsAMiss) {
  fill();
  const std::string entry = test::only_entry(folder_.root());
  FaultyFiles files(
      [&](Call call, const std::string& path) { return call == Call::open && path == entry ? -EACCES : 0; });
  Cache cache = test::open(folder_, compiler_, &files);
  EXPECT_EQ(cache.get(kernel())->cubin, expected_cubin(kernel()));
  EXPECT_EQ(compiler_->compiles, 2);
  EXPECT_EQ(cache.counters().quarantined, 0U);  // nothing says that it is damaged
  EXPECT_EQ(cache.counters().refused, 2U);      // seen twice: before the lock and under it
}

TEST_F(FaultTest, A10StaleHandleIsReadAgain) {
  fill();
  int stale = 1;
  FaultyFiles files(
      [&](Call call, const std::string&) { return call == Call::read && stale-- > 0 ? -ESTALE : 0; });
  Cache cache = test::open(folder_, compiler_, &files);
  EXPECT_EQ(cache.get(kernel())->cubin, expected_cubin(kernel()));
  EXPECT_EQ(compiler_->compiles, 1);
}

TEST_F(FaultTest, A10StaleForEverIsAMiss) {
  fill();
  FaultyFiles files([&](Call call, const std::string&) { return call == Call::read ? -ESTALE : 0; });
  Cache cache = test::open(folder_, compiler_, &files);
  EXPECT_EQ(cache.get(kernel())->cubin, expected_cubin(kernel()));
  EXPECT_EQ(compiler_->compiles, 2);
}

TEST_F(FaultTest, A4EntryReplacedOrRemovedWhileItIsRead) {
  fill();
  const fs::path entry = test::only_entry(folder_.root());
  const std::string image = test::read_bytes(entry);
  FaultyFiles files([&](Call call, const std::string&) {
    if (call == Call::read) fs::remove(entry);  // after it was opened
    return 0;
  });
  Cache cache = test::open(folder_, compiler_, &files);
  EXPECT_EQ(cache.get(kernel())->cubin, expected_cubin(kernel()));
  EXPECT_EQ(compiler_->compiles, 1);
}

// Every call of a cold get, failing in every way, once and for ever.
TEST_F(FaultTest, A9A19A20EveryCallFailsAndTheKernelStillRuns) {
  const int errors[] = {ENOSPC, EDQUOT,    EIO,    ESTALE, EACCES, EROFS,
                        EBUSY,  ENOTEMPTY, EMFILE, EPERM,  ENOLCK, EINVAL};
  for (const Call call : test::all_calls) {
    for (const int error : errors) {
      for (const bool for_ever : {false, true}) {
        const Folder folder;
        auto compiler = std::make_shared<FakeCompiler>();
        int left = 1;
        FaultyFiles files([&](Call made, const std::string&) {
          if (made != call) return 0;
          return for_ever || left-- > 0 ? -error : 0;
        });
        const std::string what = std::string(test::to_string(call)) + ": " + error_text(-error);
        const test::Warnings warnings;
        Options options = rooted(folder.root());
        options.lock_wait = std::chrono::milliseconds(1);
        Cache cache(options, {&files, compiler});
        for (int i = 0; i < 3; ++i) ASSERT_EQ(cache.get(kernel(i))->cubin, expected_cubin(kernel(i))) << what;
        EXPECT_EQ(compiler->compiles, 3) << what;
        // Not stored: counted each time, warned of once.
        const std::uint64_t lost = cache.counters().publish_failures;
        EXPECT_EQ(cache.counters().publishes + lost, 3U) << what;
        EXPECT_LE(warnings.count(), 1U) << what;
        EXPECT_TRUE(lost == 0 || warnings.count() == 1) << what;
        if (for_ever && (call == Call::write || call == Call::sync || call == Call::rename)) {
          EXPECT_EQ(lost, 3U) << what;
        }
        if (call != Call::unlink && call != Call::close) {
          EXPECT_TRUE(test::files_below(folder.root() / "tmp").empty()) << what;
        }
        // Whatever is left behind, the next process is none the worse.
        auto next = std::make_shared<FakeCompiler>();
        Cache sound = test::open(folder, next);
        for (int i = 0; i < 3; ++i) ASSERT_EQ(sound.get(kernel(i))->cubin, expected_cubin(kernel(i))) << what;
        EXPECT_EQ(sound.counters().quarantined, 0U) << what;
      }
    }
  }
}

// The same for a warm one: reading fails.
TEST_F(FaultTest, A18A22EveryReadingCallFailsAndTheKernelStillRuns) {
  for (const Call call : test::all_calls) {
    for (const int error : {EIO, ESTALE, EACCES, ENOENT, EMFILE, ELOOP, EINVAL}) {
      const Folder folder;
      auto compiler = std::make_shared<FakeCompiler>();
      test::open(folder, compiler).get(kernel());
      FaultyFiles files([&](Call made, const std::string&) { return made == call ? -error : 0; });
      Cache cache = test::open(folder, compiler, &files);
      ASSERT_EQ(cache.get(kernel())->cubin, expected_cubin(kernel()))
          << test::to_string(call) << ": " << error_text(-error);
      EXPECT_LE(compiler->compiles, 2);
    }
  }
}

TEST_F(FaultTest, ShortWritesAreContinued) {
  class Slow : public FileSystem {
   public:
    ssize_t write(int fd, const void* from, std::size_t size) override {
      return FileSystem::write(fd, from, std::min<std::size_t>(size, 7));
    }
    ssize_t read(int fd, void* to, std::size_t size, std::uint64_t offset) override {
      return FileSystem::read(fd, to, std::min<std::size_t>(size, 11), offset);
    }
  };
  Slow files;
  test::open(folder_, compiler_, &files).get(kernel());
  EXPECT_EQ(test::open(folder_, compiler_, &files).get(kernel())->cubin, expected_cubin(kernel()));
  EXPECT_EQ(compiler_->compiles, 1);
}

TEST_F(FaultTest, PrewarmThatCannotStoreIsAnError) {
  FaultyFiles files([](Call call, const std::string&) { return call == Call::write ? -ENOSPC : 0; });
  Cache cache = test::open(folder_, compiler_, &files);
  try {
    cache.prewarm(kernel());
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::io);
    EXPECT_NE(std::string(error.what()).find("No space left"), std::string::npos) << error.what();
  }
  files.set_hook({});
  EXPECT_FALSE(cache.prewarm(kernel()));  // compiled already, now stored
  EXPECT_EQ(cache.list().size(), 1U);
}

// Restores the root's mode: the folder must be removable.
TEST_F(FaultTest, A20ReadOnlyRootIsMemoryOnlyWithOneWarning) {
  if (::geteuid() == 0) {
    // The superuser writes anywhere; the seam stands for a read-only file system.
    FaultyFiles files([](Call call, const std::string&) {
      return call == Call::make_directory || call == Call::rename || call == Call::write ? -EROFS : 0;
    });
    const test::Warnings warnings;
    Cache cache = test::open(folder_, compiler_, &files);
    for (int i = 0; i < 4; ++i) cache.get(kernel(i));
    EXPECT_EQ(warnings.count(), 1U);
    EXPECT_EQ(cache.counters().publish_failures, 4U);
    return;
  }
  fs::create_directory(folder_.root());
  fs::permissions(folder_.root(), fs::perms::owner_read | fs::perms::owner_exec);
  const test::Warnings warnings;
  Cache cache = test::open(folder_, compiler_);
  for (int i = 0; i < 4; ++i) cache.get(kernel(i));
  EXPECT_EQ(warnings.count(), 1U);
  EXPECT_EQ(cache.counters().publish_failures, 4U);
  fs::permissions(folder_.root(), fs::perms::owner_all);
}

TEST_F(FaultTest, RootRemovedUnderARunningProcess) {
  Cache cache = test::open(folder_, compiler_);
  cache.get(kernel(0));
  fs::remove_all(folder_.root());
  EXPECT_EQ(cache.get(kernel(1))->cubin, expected_cubin(kernel(1)));
  EXPECT_EQ(cache.get(kernel(0))->cubin, expected_cubin(kernel(0)));
  EXPECT_EQ(test::open(folder_, compiler_).list().size(), 1U);
}

}  // namespace
}  // namespace mxjit::cache
