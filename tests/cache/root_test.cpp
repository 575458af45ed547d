// The root: where it is, whether it is safe, how it is made.
#include "cache/root.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <set>
#include <thread>

#include "cache/options.hpp"
#include "mxjit/error.hpp"
#include "support.hpp"

namespace mxjit::cache {
namespace {

using test::Folder;
using test::kernel;
using test::rooted;
namespace fs = std::filesystem;

// Sets variables (nullptr: unset) and puts them back.
class Environment {
 public:
  explicit Environment(std::vector<std::pair<std::string, const char*>> values) {
    for (const auto& [name, value] : values) {
      const char* before = std::getenv(name.c_str());
      before_.emplace_back(name, before == nullptr ? std::nullopt : std::optional<std::string>(before));
      set(name, value);
    }
  }
  ~Environment() {
    for (const auto& [name, value] : before_) set(name, value ? value->c_str() : nullptr);
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  static void set(const std::string& name, const char* value) {
    if (value == nullptr) {
      ::unsetenv(name.c_str());
    } else {
      ::setenv(name.c_str(), value, 1);
    }
  }
  std::vector<std::pair<std::string, std::optional<std::string>>> before_;
};

std::string refusal(const fs::path& root, bool trust = false) {
  Options options = rooted(root);
  options.trust_root = trust;
  Cache cache(options, {nullptr, std::make_shared<test::FakeCompiler>()});
  try {
    cache.get(kernel());
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_NE(std::string(error.what()).find(root.string()), std::string::npos);
    return error.what();
  }
  return {};
}

TEST(Root, ComesFromTheEnvironmentInOrder) {
  const Environment environment({{"MXJIT_CACHE_DIR", "/one"},
                                 {"XDG_CACHE_HOME", "/two"},
                                 {"HOME", "/three"},
                                 {"MXJIT_BUNDLE_PATH", ":/a::/b b:"},
                                 {"MXJIT_COMPILE", "forbid"},
                                 {"MXJIT_CACHE_TRUST_ROOT", "1"},
                                 {"MXJIT_NVRTC", "/lib/nvrtc"}});
  Options options = Options::from_environment();
  EXPECT_EQ(options.root, "/one");
  EXPECT_EQ(options.layers, (std::vector<fs::path>{"/a", "/b b"}));
  EXPECT_TRUE(options.forbid_compile);
  EXPECT_TRUE(options.trust_root);
  EXPECT_EQ(options.nvrtc_path, "/lib/nvrtc");
  ::setenv("MXJIT_CACHE_DIR", "", 1);
  EXPECT_EQ(Options::from_environment().root, "/two/mxjit");
  ::setenv("XDG_CACHE_HOME", "relative", 1);
  EXPECT_EQ(Options::from_environment().root, "/three/.cache/mxjit");
  ::setenv("MXJIT_COMPILE", "forbidden", 1);
  EXPECT_THROW(Options::from_environment(), Error);
}

TEST(Root, A21NoHomeIsMemoryOnly) {
  const Environment environment(
      {{"MXJIT_CACHE_DIR", nullptr}, {"XDG_CACHE_HOME", nullptr}, {"HOME", nullptr}});
  EXPECT_EQ(Options::from_environment().root, std::nullopt);
  ::setenv("HOME", "", 1);
  EXPECT_EQ(Options::from_environment().root, std::nullopt);
}

TEST(Root, A21HomeThatCannotExistWarnsOnceAndRuns) {
  const Environment environment(
      {{"MXJIT_CACHE_DIR", nullptr}, {"XDG_CACHE_HOME", nullptr}, {"HOME", "/proc/homeless-shelter"}});
  const test::Warnings warnings;
  Cache cache(Options::from_environment(), {nullptr, std::make_shared<test::FakeCompiler>()});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(cache.get(kernel(i))->cubin, test::expected_cubin(kernel(i)));
  EXPECT_EQ(warnings.count(), 1U);
  EXPECT_EQ(cache.counters().publish_failures, 3U);
}

// A user who is in no list, with no environment at all.
TEST(Root, A21UnknownUserWithoutEnvironment) {
  const auto results = test::run_children(1, [](int) {
    ::clearenv();
    if (::geteuid() == 0 && ::setuid(99999) != 0) return 2;
    const Options options = Options::from_environment();
    Cache cache(options, {nullptr, std::make_shared<test::FakeCompiler>()});
    return !options.root && cache.get(kernel())->cubin == test::expected_cubin(kernel()) ? 0 : 1;
  });
  EXPECT_EQ(results[0], 0);
}

TEST(Root, IsMadeLazilyWithMode0700AndMissingParents) {
  const Folder folder;
  const fs::path root = folder.path() / "missing" / "parents" / "root";
  Cache cache(rooted(root), {nullptr, std::make_shared<test::FakeCompiler>()});
  EXPECT_EQ(cache.find(kernel()), nullptr);
  EXPECT_FALSE(fs::exists(folder.path() / "missing"));
  cache.get(kernel());
  EXPECT_EQ(fs::status(root).permissions(), fs::perms::owner_all);
  EXPECT_NE(Cache(rooted(root), {nullptr, std::make_shared<test::FakeCompiler>()}).find(kernel()), nullptr);
}

TEST(Root, A23SymlinkIsRefused) {
  const Folder folder;
  fs::create_directory(folder.path() / "real");
  fs::create_directory_symlink(folder.path() / "real", folder.root());
  EXPECT_NE(refusal(folder.root()).find("symlink"), std::string::npos);
  EXPECT_TRUE(fs::is_empty(folder.path() / "real"));
  for (const char* tail : {"/", "//", "/.", "/./"}) {
    Cache cache(rooted(folder.root().string() + tail), {nullptr, std::make_shared<test::FakeCompiler>()});
    EXPECT_THROW(cache.get(kernel()), Error) << tail;
  }
  EXPECT_EQ(refusal(folder.root(), true), "");
  EXPECT_EQ(test::files_below(folder.path() / "real").size(), 2U);  // the entry and the lock
}

TEST(Root, A23WorldWritableIsRefused) {
  const Folder folder;
  fs::create_directory(folder.root());
  fs::permissions(folder.root(), fs::perms::all);
  EXPECT_NE(refusal(folder.root()).find("world-writable"), std::string::npos);
  EXPECT_TRUE(fs::is_empty(folder.root()));
  EXPECT_EQ(refusal(folder.root(), true), "");
}

// Another owner, as the file system would tell: tests may not run as a user who can make one.
TEST(Root, A23AnotherOwnerIsRefused) {
  class Foreign : public FileSystem {
   public:
    using FileSystem::status;
    int status(const std::string& path, struct stat& result) override {
      const int error = FileSystem::status(path, result);
      if (path == root) result.st_uid = ::geteuid() + 1;
      return error;
    }
    std::string root;
  };
  const Folder folder;
  fs::create_directory(folder.root());
  Foreign files;
  files.root = folder.root();
  Options options = rooted(folder.root());
  try {
    Cache(options, {&files, std::make_shared<test::FakeCompiler>()}).get(kernel());
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_NE(std::string(error.what()).find("owner"), std::string::npos);
  }
  options.trust_root = true;
  EXPECT_NE(Cache(options, {&files, std::make_shared<test::FakeCompiler>()}).get(kernel()), nullptr);
}

TEST(Root, ParentsAreNotLookedAt) {
  const Folder folder;
  fs::create_directory(folder.path() / "shared");
  fs::permissions(folder.path() / "shared", fs::perms::all);
  fs::create_directory_symlink(folder.path() / "shared", folder.path() / "link");
  EXPECT_EQ(refusal(folder.path() / "link" / "root"), "");
}

TEST(Root, A8WhatIsThereAlreadyIsFine) {
  const Folder folder;
  test::FakeCompiler compiler;
  const Store store(host_files(), folder.root(), false);
  const std::string target = store.path_of(codegen::key(kernel()), compiler.name);
  fs::create_directories(fs::path(target).parent_path());
  fs::permissions(folder.root(), fs::perms::owner_all);
  fs::create_directories(folder.root() / "tmp");
  fs::create_directories(folder.root() / "quarantine");
  test::write_bytes(folder.root() / "lock", "");
  test::write_bytes(target, "");
  Cache cache(rooted(folder.root()), {nullptr, std::make_shared<test::FakeCompiler>()});
  EXPECT_EQ(cache.get(kernel())->cubin, test::expected_cubin(kernel()));
  EXPECT_EQ(cache.counters().publishes, 1U);
}

TEST(Root, A6EntriesFollowTheUmask) {
  const Folder folder;
  const mode_t before = ::umask(027);
  Cache(rooted(folder.root()), {nullptr, std::make_shared<test::FakeCompiler>()}).get(kernel());
  ::umask(before);
  const auto permissions = fs::status(test::only_entry(folder.root())).permissions();
  EXPECT_EQ(permissions, fs::perms::owner_read | fs::perms::owner_write | fs::perms::group_read);
}

// No pid, clock or host in a name: equal pids in two containers do no harm.
TEST(Root, A6A7TemporaryNamesNeverRepeat) {
  const int threads = 64, each = test::long_tests() ? 15625 : 1000;
  std::vector<std::vector<std::string>> names(threads);
  std::vector<std::thread> running;
  for (auto& mine : names) {
    running.emplace_back([&mine, each] {
      for (int i = 0; i < each; ++i) mine.push_back(unique_name("tmp-"));
    });
  }
  for (std::thread& thread : running) thread.join();
  std::set<std::string> all;
  for (const auto& mine : names) all.insert(mine.begin(), mine.end());
  EXPECT_EQ(all.size(), static_cast<std::size_t>(threads) * each);
}

}  // namespace
}  // namespace mxjit::cache
