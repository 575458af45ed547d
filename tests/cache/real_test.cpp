// The cache with NVRTC and the library's own kernels. Skipped where there is no NVRTC.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <random>

#include "codegen/target.hpp"
#include "codegen/with_nvrtc.hpp"
#include "configure/configure.hpp"
#include "mxjit/error.hpp"
#include "problem/problem.hpp"
#include "support.hpp"

namespace mxjit::cache {
namespace {

using test::Folder;
using test::rooted;

// The kernel of a plain quantization along rows.
codegen::KernelDescriptor real_kernel(const std::string& target = "sm_90a") {
  const auto problem = problem::parse(
      R"({"schema":1,"op":"quantize","input":{"dtype":"bf16","shape":[256,512]},"scaling":"mx","block":32})");
  codegen::KernelDescriptor descriptor;
  descriptor.configuration = configure::configure(problem, configure::default_profile(target)).front();
  descriptor.target = target;
  return descriptor;
}

class RealTest : public test::WithNvrtc<> {
 protected:
  Folder folder_;
};

TEST_F(RealTest, ColdThenWarm) {
  Cache cold(rooted(folder_.root()));
  const auto compiled = cold.get(real_kernel());
  EXPECT_EQ(cold.counters().compiles, 1U);
  Cache warm(rooted(folder_.root()));
  const auto read = warm.get(real_kernel());
  EXPECT_EQ(warm.counters().compiles, 0U);
  EXPECT_EQ(warm.counters().root_hits, 1U);
  EXPECT_EQ(read->cubin, compiled->cubin);
  EXPECT_EQ(read->resources, compiled->resources);
}

TEST_F(RealTest, A17DamageIsRebuiltToTheSameBytes) {
  Cache first(rooted(folder_.root()));
  const auto expected = first.get(real_kernel());
  const auto entry = test::only_entry(folder_.root());
  const std::string image = test::read_bytes(entry);
  std::mt19937 random(50);
  for (int i = 0; i < (test::long_tests() ? 50 : 3); ++i) {
    std::string damaged = image;
    const std::size_t bit = random() % (8 * image.size());
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    test::write_bytes(entry, damaged);
    Cache cache(rooted(folder_.root()));
    ASSERT_EQ(cache.get(real_kernel())->cubin, expected->cubin);
    ASSERT_EQ(cache.counters().compiles, 1U);
    ASSERT_EQ(test::read_bytes(entry), image);  // the entry is the same to the byte as well
  }
}

TEST_F(RealTest, A38A39WarmNeedsNoNvrtcToolkitOrPath) {
  Cache(rooted(folder_.root())).get(real_kernel());
  const auto results = test::run_children(1, [&](int) {
    ::setenv("PATH", "", 1);
    ::unsetenv("CUDA_HOME");
    ::unsetenv("MXJIT_NVRTC");
    Options options = rooted(folder_.root());
    options.nvrtc_path = "/nowhere/libnvrtc.so.13";
    Cache cache(options);
    if (cache.get(real_kernel())->cubin.empty() || cache.counters().root_hits != 1) return 1;
    try {
      cache.get(real_kernel("sm_100a"));
    } catch (const Error& error) {
      const bool tells = std::string(error.what()).find("/nowhere/libnvrtc.so.13") != std::string::npos;
      return error.code() == ErrorCode::unavailable && tells ? 0 : 2;
    }
    return 3;
  });
  EXPECT_EQ(results[0], 0);
}

TEST_F(RealTest, A36CompilesForEveryTargetWithoutAGpu) {
  Cache cache(rooted(folder_.root()));
  for (const std::string_view target : codegen::targets()) {
    EXPECT_TRUE(cache.prewarm(real_kernel(std::string(target)))) << target;
  }
  EXPECT_EQ(cache.verify(true).entries, codegen::targets().size());
  EXPECT_TRUE(cache.verify(true).bad.empty());
  for (const Entry& entry : cache.list()) EXPECT_EQ(entry.resources.spill_bytes, 0) << entry.descriptor;
}

TEST_F(RealTest, A52BundlesOfTwoFoldersAreEqual) {
  std::string bundles[2];
  for (int side = 0; side < 2; ++side) {
    Cache cache(rooted(folder_.path() / ("root" + std::to_string(side))));
    cache.get(real_kernel());
    cache.get(real_kernel("sm_120a"));
    cache.export_bundle(folder_.path() / "bundle");
    bundles[side] = test::read_bytes(folder_.path() / "bundle");
  }
  EXPECT_TRUE(bundles[0] == bundles[1]);
}

// An alien library in NVRTC's place is told by its build, and each keeps its own entries.
TEST_F(RealTest, A27IdentityOfTheCompilerIsPartOfTheBuild) {
  Cache cache(rooted(folder_.root()));
  const auto entry = cache.get(real_kernel());
  EXPECT_EQ(entry->compiler, nvrtc_->identity());
  EXPECT_EQ(entry->build, nvrtc_->build());
  EXPECT_NE(entry->build, "");
}

}  // namespace
}  // namespace mxjit::cache
