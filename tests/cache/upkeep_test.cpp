// Listing, verifying, collecting, removing.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "mxjit/error.hpp"
#include "support.hpp"

namespace mxjit::cache {
namespace {

using test::Folder;
using test::kernel;
namespace fs = std::filesystem;

class UpkeepTest : public testing::Test {
 protected:
  Cache open() { return test::open(folder_, compiler_); }
  static void age(const fs::path& path, int hours) {
    fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(hours));
  }
  fs::path file_of(int index) {
    for (const std::string& file : test::files_below(folder_.root())) {
      if (file.find(to_hex(codegen::key(kernel(index)))) != std::string::npos) return folder_.root() / file;
    }
    return {};
  }
  Folder folder_;
  std::shared_ptr<test::FakeCompiler> compiler_ = std::make_shared<test::FakeCompiler>();
};

TEST_F(UpkeepTest, NothingThereIsNothingToDo) {
  Cache cache = open();
  EXPECT_TRUE(cache.list().empty());
  EXPECT_EQ(cache.verify(true).entries, 0U);
  EXPECT_EQ(cache.collect(0).entries, 0U);
  EXPECT_EQ(cache.clear(), 0U);
  EXPECT_FALSE(fs::exists(folder_.root()));
}

TEST_F(UpkeepTest, ListsWithoutCubins) {
  Cache cache = open();
  for (int i = 0; i < 3; ++i) cache.get(kernel(i));
  const auto entries = cache.list();
  ASSERT_EQ(entries.size(), 3U);
  for (const Entry& entry : entries) {
    EXPECT_TRUE(entry.cubin.empty());
    EXPECT_EQ(codegen::key(codegen::parse_descriptor(entry.descriptor)), entry.key);
  }
}

TEST_F(UpkeepTest, VerifyNamesBadEntries) {
  Cache cache = open();
  for (int i = 0; i < 3; ++i) cache.get(kernel(i));
  EXPECT_TRUE(cache.verify(true).bad.empty());
  std::string image = test::read_bytes(file_of(1));
  image[image.size() - 40] = static_cast<char>(image[image.size() - 40] ^ 1);  // in the cubin
  test::write_bytes(file_of(1), image);
  EXPECT_TRUE(cache.verify(false).bad.empty());  // quick: headers only
  Stats stats = cache.verify(true);
  EXPECT_EQ(stats.entries, 2U);
  ASSERT_EQ(stats.bad.size(), 1U);
  EXPECT_EQ(stats.bad[0].path, file_of(1).string());
  EXPECT_NE(stats.bad[0].reason.find("SHA-256"), std::string::npos);
  test::write_bytes(file_of(2), "MXJITK1\nxx");
  EXPECT_EQ(cache.verify(false).bad.size(), 1U);
  EXPECT_EQ(cache.verify(true).bad.size(), 2U);
}

TEST_F(UpkeepTest, A19CollectRemovesTheLeastRecentlyUsed) {
  Cache cache = open();
  for (int i = 0; i < 4; ++i) cache.get(kernel(i));
  for (int i = 0; i < 4; ++i) age(file_of(i), 100 - i);
  age(file_of(0), 30);  // the oldest was used again
  const std::uint64_t bytes = cache.verify(false).bytes;
  Collected done = cache.collect(bytes - 1);
  EXPECT_EQ(done.entries, 1U);
  EXPECT_EQ(file_of(1), fs::path());
  EXPECT_EQ(done.entries_left, 3U);
  done = cache.collect(UINT64_MAX, 1);
  EXPECT_EQ(done.entries, 2U);
  EXPECT_NE(file_of(0), fs::path());
  EXPECT_EQ(done.bytes_left, cache.verify(true).bytes);
  EXPECT_EQ(open().get(kernel(1))->cubin, test::expected_cubin(kernel(1)));
}

TEST_F(UpkeepTest, UseIsRememberedButSeldomWritten) {
  open().get(kernel(0));
  age(file_of(0), 30);
  const auto before = fs::last_write_time(file_of(0));
  open().get(kernel(0));
  const auto touched = fs::last_write_time(file_of(0));
  EXPECT_GT(touched, before + std::chrono::hours(29));
  open().get(kernel(0));
  EXPECT_EQ(fs::last_write_time(file_of(0)), touched);
}

TEST_F(UpkeepTest, A9StaleTemporariesAreSweptLiveOnesAreNot) {
  Cache cache = open();
  cache.get(kernel(0));
  const fs::path tmp = folder_.root() / "tmp";
  for (const char* name : {"tmp-stale", "tmp-live", "tmp-young", "others"})
    test::write_bytes(tmp / name, "half");
  for (const char* name : {"tmp-stale", "tmp-live", "others"}) age(tmp / name, 2);
  const OpenFile live(host_files(), tmp / "tmp-live", O_WRONLY);
  ASSERT_EQ(host_files().try_lock(live.fd(), 0), 0);
  EXPECT_EQ(cache.collect(UINT64_MAX).temporaries, 1U);
  EXPECT_EQ(test::files_below(tmp), (std::vector<std::string>{"others", "tmp-live", "tmp-young"}));
}

TEST_F(UpkeepTest, A9StartIsNotHurtByLeftOversAndSweepsThem) {
  fs::create_directories(folder_.root() / "tmp");
  fs::permissions(folder_.root(), fs::perms::owner_all);
  for (int i = 0; i < 50; ++i) {
    const fs::path litter = folder_.root() / "tmp" / ("tmp-" + std::to_string(i));
    test::write_bytes(litter, "half");
    age(litter, 2);
  }
  open().get(kernel(0));
  EXPECT_TRUE(test::files_below(folder_.root() / "tmp").empty());
}

TEST_F(UpkeepTest, CollectEmptiesTheQuarantine) {
  open().get(kernel(0));
  test::write_bytes(file_of(0), "junk");
  open().get(kernel(0));
  EXPECT_EQ(test::files_below(folder_.root() / "quarantine").size(), 1U);
  EXPECT_EQ(open().collect(UINT64_MAX).quarantined, 1U);
  EXPECT_TRUE(test::files_below(folder_.root() / "quarantine").empty());
}

TEST_F(UpkeepTest, RemovesByPrefixAndAll) {
  Cache cache = open();
  for (int i = 0; i < 4; ++i) cache.get(kernel(i));
  EXPECT_EQ(cache.remove(to_hex(codegen::key(kernel(2))).substr(0, 12)), 1U);
  EXPECT_EQ(file_of(2), fs::path());
  EXPECT_THROW(cache.remove("ab"), Error);
  EXPECT_THROW(cache.remove("../../../etc"), Error);
  EXPECT_EQ(cache.clear(), 3U);
  EXPECT_TRUE(cache.list().empty());
}

TEST_F(UpkeepTest, A19EntriesAreSpreadOverFolders) {
  Cache cache = open();
  for (int i = 0; i < 40; ++i) cache.get(kernel(i));
  std::size_t folders = 0;
  for (const auto& item : fs::directory_iterator(folder_.root())) {
    if (item.path().filename().string().size() == 2) ++folders;
  }
  EXPECT_GT(folders, 20U);
}

}  // namespace
}  // namespace mxjit::cache
