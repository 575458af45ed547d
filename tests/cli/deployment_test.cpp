// A cache on its way to where it is used: moved, owned by another user, shipped as a bundle, on a full disk.
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "cli/tensor_file.hpp"
#include "cli/tool.hpp"

namespace mxjit::test {
namespace {

namespace fs = std::filesystem;

class Deployment : public ToolTest {
 protected:
  void SetUp() override {
    ToolTest::SetUp();
    write("row.json", quantize_problem(256, 512));
    auto dual = nlohmann::json::parse(quantize_problem(256, 512));
    dual["axes"] = {"row", "col"};
    write("dual.json", dual.dump());
    why_ = why_no_nvrtc();
  }
  Ran prewarm(const std::string& root, const How& how = {}) {
    return tool(
        {"prewarm", "--problems", "row.json", "dual.json", "--arch", "sm_90a", "--cache", root, "--json"},
        how);
  }
  // Every kernel is a hit where nothing could be compiled.
  void expect_warm(const Ran& ran) {
    ASSERT_EQ(ran.status, 0) << ran.err;
    EXPECT_EQ(ran.json()["compiled"], 0);
    EXPECT_EQ(ran.json()["hits"], 2);
    EXPECT_EQ(ran.err, "");
  }
  static How no_compiler() {
    return {.env = {{"MXJIT_NVRTC", "/nowhere"}, {"MXJIT_COMPILE", "forbid"}, {"PATH", ""}}};
  }
  void age(const std::string& folder) {
    for (const auto& item : fs::recursive_directory_iterator(path(folder)))
      if (!item.is_symlink())
        fs::last_write_time(item.path(), fs::file_time_type::clock::now() - std::chrono::hours(24 * 3000));
  }
  std::string why_;
};

TEST_F(Deployment, ProgramAndCacheMoveFreely) {
  if (!why_.empty()) GTEST_SKIP() << why_;
  ASSERT_EQ(prewarm("root").json()["compiled"], 2);
  ASSERT_EQ(tool({"cache", "export", "first.bundle", "--cache", "root"}).status, 0);
  fs::create_directories(path("a b/ü'$x;"));
  const std::string moved = "a b/ü'$x;/cache";
  fs::rename(path("root"), path(moved));
  age(moved);
  How how = no_compiler();
  how.program = path("a b/program");
  fs::copy_file(MXJIT_TOOL, how.program);
  fs::last_write_time(how.program, fs::file_time_type::clock::now() - std::chrono::hours(24 * 4000));
  expect_warm(prewarm(moved, how));
  // The same bundle to the byte, by another copy of the program, of a cache made elsewhere by itself.
  How compiling;
  compiling.program = how.program;
  ASSERT_EQ(prewarm("again", compiling).json()["compiled"], 2);
  for (const std::string& root : {moved, std::string("again")}) {
    ASSERT_EQ(tool({"cache", "export", "second.bundle", "--cache", root}, how).status, 0);
    EXPECT_TRUE(read("first.bundle") == read("second.bundle")) << root;
  }
}

TEST_F(Deployment, AnotherUserUsesIt) {
  if (!why_.empty()) GTEST_SKIP() << why_;
  if (::geteuid() != 0) GTEST_SKIP() << "only the superuser can become another user";
  constexpr unsigned user = 65534;
  ASSERT_EQ(prewarm("root").json()["compiled"], 2);
  How how = no_compiler();
  how.user = user;
  how.program = path("program");
  fs::copy_file(MXJIT_TOOL, how.program);
  ASSERT_EQ(::chown(path("").c_str(), user, user), 0);
  // The root of somebody else is refused as a root, and serves as a layer.
  const Ran refused = prewarm("root", how);
  EXPECT_EQ(refused.status, 2) << refused.err;
  EXPECT_NE(refused.err.find("owner"), std::string::npos) << refused.err;
  fs::permissions(path("root"), fs::perms::others_read | fs::perms::others_exec, fs::perm_options::add);
  How layer = how;
  layer.env["MXJIT_BUNDLE_PATH"] = path("root").string();
  expect_warm(prewarm("own", layer));
  // Given away, it is theirs.
  for (const auto& item : fs::recursive_directory_iterator(path("root")))
    ASSERT_EQ(::chown(item.path().c_str(), user, user), 0);
  ASSERT_EQ(::chown(path("root").c_str(), user, user), 0);
  age("root");
  expect_warm(prewarm("root", how));
}

// A file system of `kilobytes`, unmounted in the end.
class SmallDisk {
 public:
  SmallDisk(fs::path at, int kilobytes) : at_(std::move(at)) {
    fs::create_directory(at_);
    const std::string options = "mode=700,size=" + std::to_string(kilobytes) + "k";
    if (::mount("tmpfs", at_.c_str(), "tmpfs", 0, options.c_str()) != 0) why_ = std::strerror(errno);
  }
  ~SmallDisk() {
    if (why_.empty()) ::umount2(at_.c_str(), MNT_DETACH);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  const std::string& why() const { return why_; }
  fs::space_info space() const { return fs::space(at_); }

 private:
  fs::path at_;
  std::string why_;
};

TEST_F(Deployment, AFullDisk) {
  if (!why_.empty()) GTEST_SKIP() << why_;
  ASSERT_EQ(prewarm("root").json()["compiled"], 2);
  ASSERT_EQ(tool({"cache", "export", "whole.bundle", "--cache", "root"}).status, 0);
  SmallDisk disk(path("disk"), 4096);
  if (!disk.why().empty()) GTEST_SKIP() << "a small file system cannot be mounted: " << disk.why();
  const std::string root = "disk/root";
  const auto entries = [&] {
    const Ran ran = tool({"cache", "verify", "--cache", root, "--json"});
    EXPECT_EQ(ran.status, 0) << ran.err;
    return ran.json()["entries"].get<int>();
  };
  // One entry is there; then something else fills the disk but for a few kilobytes.
  ASSERT_EQ(tool({"prewarm", "--problems", "row.json", "--arch", "sm_90a", "--cache", root}).status, 0);
  const auto left = disk.space().available;
  ASSERT_GT(left, 64U * 1024);
  write("disk/filler", std::string(left - 8 * 1024, 'x'));

  const Ran compiled = prewarm(root);
  EXPECT_EQ(compiled.status, 1) << compiled.err;
  EXPECT_NE(compiled.err.find("No space left"), std::string::npos) << compiled.err;
  EXPECT_EQ(entries(), 1);
  const Ran imported = tool({"cache", "import", "whole.bundle", "--cache", root});
  EXPECT_EQ(imported.status, 1) << imported.err;
  EXPECT_EQ(entries(), 1);
  const Ran exported = tool({"cache", "export", "disk/out.bundle", "--cache", "root"});
  EXPECT_EQ(exported.status, 1) << exported.err;
  std::set<std::string> names;
  for (const auto& item : fs::directory_iterator(path("disk"))) names.insert(item.path().filename().string());
  EXPECT_EQ(names, (std::set<std::string>{"root", "filler"}));  // neither half a bundle nor a temporary
  // What is there still serves, and collection needs no room.
  EXPECT_EQ(tool({"prewarm", "--problems", "row.json", "--arch", "sm_90a", "--cache", root, "--json"},
                 no_compiler())
                .json()["hits"],
            1);
  const Ran collected = tool({"cache", "gc", "--max-entries", "0", "--cache", root, "--json"});
  EXPECT_EQ(collected.status, 0) << collected.err;
  EXPECT_EQ(collected.json()["removed"], 1);
  EXPECT_EQ(entries(), 0);
  // With room again everything goes through.
  fs::remove(path("disk/filler"));
  EXPECT_EQ(tool({"cache", "import", "whole.bundle", "--cache", root}).status, 0);
  EXPECT_EQ(entries(), 2);
  EXPECT_EQ(tool({"cache", "export", "disk/out.bundle", "--cache", root}).status, 0);
  EXPECT_TRUE(read("disk/out.bundle") == read("whole.bundle"));
}

}  // namespace
}  // namespace mxjit::test
