// The key: everything that changes the cubin is in it.
#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <set>
#include <vector>

#include "base/sha256.hpp"
#include "sample.hpp"

namespace mxjit::codegen {
namespace {

TEST(Key, A28EveryFieldOfTheDescriptorMatters) {
  using Change = std::function<void(KernelDescriptor&)>;
  const std::vector<Change> changes = {
      [](KernelDescriptor& d) { d.target = "sm_100a"; },
      [](KernelDescriptor& d) { d.target = "sm_90"; },
      [](KernelDescriptor& d) { d.configuration.kernel = "tiny/scale"; },
      [](KernelDescriptor& d) { d.configuration.threads = 256; },
      [](KernelDescriptor& d) { d.configuration.min_blocks = 1; },
      [](KernelDescriptor& d) { d.configuration.shared_bytes = 0; },
      [](KernelDescriptor& d) { d.configuration.cluster = 2; },
      [](KernelDescriptor& d) { d.configuration.constants["columns"] = std::int64_t{5}; },
      [](KernelDescriptor& d) { d.configuration.constants["columns"] = true; },
      [](KernelDescriptor& d) { d.configuration.constants["twice"] = false; },
      [](KernelDescriptor& d) { d.configuration.constants["twice"] = std::int64_t{1}; },
      [](KernelDescriptor& d) { d.configuration.constants["mode"] = std::string("TinyMode::subtract"); },
      [](KernelDescriptor& d) { d.configuration.constants["more"] = false; },
      [](KernelDescriptor& d) { d.configuration.constants.erase("big"); },
  };
  std::set<Digest> keys = {key(test::sample())};
  for (const Change& change : changes) {
    KernelDescriptor descriptor = test::sample();
    change(descriptor);
    EXPECT_TRUE(keys.insert(key(descriptor)).second) << print(descriptor);
  }
}

TEST(Key, A24TwoTargetsAreTwoKeys) {
  KernelDescriptor other = test::sample();
  other.target = "sm_100a";
  EXPECT_NE(key(test::sample()), key(other));
}

TEST(Key, A29PartsCannotRunTogether) {
  const auto digest = [](const std::vector<std::string>& parts) {
    Sha256 hash;
    for (const std::string& part : parts) hash.part(part);
    return hash.finish();
  };
  EXPECT_NE(digest({"ab", "c"}), digest({"a", "bc"}));
  EXPECT_NE(digest({"ab"}), digest({"ab", ""}));
  EXPECT_NE(digest({"", "ab"}), digest({"ab", ""}));
}

// Two ways to cut one random text into parts never share a digest.
TEST(Key, A29RandomCutsDiffer) {
  std::mt19937 random(29);
  for (int round = 0; round < 20000; ++round) {
    const std::string text(1 + random() % 40, 'x');
    const std::size_t one = random() % (text.size() + 1), two = random() % (text.size() + 1);
    Sha256 a, b;
    a.part(text.substr(0, one));
    a.part(text.substr(one));
    b.part(text.substr(0, two));
    b.part(text.substr(two));
    ASSERT_EQ(a.finish() == b.finish(), one == two);
  }
}

TEST(Key, EnvironmentHasNoPart) {
  const Digest before = key(test::sample());
  ::setenv("CUDA_HOME", "/nowhere", 1);
  ::setenv("MXJIT_CACHE_DIR", "/elsewhere", 1);
  EXPECT_EQ(key(test::sample()), before);
  ::unsetenv("CUDA_HOME");
  ::unsetenv("MXJIT_CACHE_DIR");
}

}  // namespace
}  // namespace mxjit::codegen
