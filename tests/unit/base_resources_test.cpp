// Cores and memory within the limits of cgroups, from a copy of /proc and /sys made by hand.
#include <gtest/gtest.h>

#include "base/resources.hpp"
#include "cache/support.hpp"

namespace mxjit {
namespace {

class ResourcesTest : public ::testing::Test {
 protected:
  void put(const std::string& name, const std::string& text) {
    const auto path = folder_.path() / name;
    std::filesystem::create_directories(path.parent_path());
    test::write_bytes(path, text);
  }
  Resources here() { return available_resources(folder_.path().string()); }
  test::Folder folder_;
};

TEST_F(ResourcesTest, WithoutLimitsTheMachineDecides) {
  EXPECT_GE(here().cores, 1U);
  EXPECT_EQ(here().memory_bytes, 0U);  // nothing says
  put("proc/meminfo", "MemTotal:        9000 kB\nMemFree: 10 kB\nMemAvailable:   4000 kB\n");
  put("proc/self/cgroup", "0::/a/b\n");
  put("sys/fs/cgroup/a/b/memory.max", "max\n");
  put("sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  EXPECT_EQ(here().memory_bytes, 4000U * 1024);
  EXPECT_EQ(here().cores, available_resources("/nowhere").cores);
  EXPECT_GT(available_resources().memory_bytes, 0U);
}

TEST_F(ResourcesTest, Version2LimitsOfTheGroupAndOfThoseAroundIt) {
  put("proc/meminfo", "MemAvailable: 4000000 kB\n");
  put("proc/self/cgroup", "0::/pod/app\n");
  put("sys/fs/cgroup/pod/app/memory.max", "1000000\n");
  put("sys/fs/cgroup/pod/app/memory.current", "400000\n");
  put("sys/fs/cgroup/pod/app/memory.stat", "anon 1\ninactive_file 100000\nactive_file 7\n");
  EXPECT_EQ(here().memory_bytes, 700000U);
  put("sys/fs/cgroup/pod/memory.max", "500000\n");
  put("sys/fs/cgroup/pod/memory.current", "450000\n");
  EXPECT_EQ(here().memory_bytes, 50000U);
  put("sys/fs/cgroup/pod/memory.current", "600000\n");  // over the limit already
  EXPECT_EQ(here().memory_bytes, 1U);
  put("sys/fs/cgroup/pod/cpu.max", "50000 100000\n");
  EXPECT_EQ(here().cores, 1U);
}

TEST_F(ResourcesTest, AContainerSeesItsOwnGroupAsTheTop) {
  put("proc/self/cgroup", "0::/kubepods/that/is/not/mounted\n");
  put("sys/fs/cgroup/memory.max", "123456\n");
  EXPECT_EQ(here().memory_bytes, 123456U);
}

TEST_F(ResourcesTest, Version1) {
  put("proc/self/cgroup", "5:memory:/job\n4:cpu,cpuacct:/job\n3:cpuset:/\n1:name=systemd:/x\n0::/job\n");
  put("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "2000000\n");
  put("sys/fs/cgroup/memory/job/memory.usage_in_bytes", "500000\n");
  put("sys/fs/cgroup/memory/job/memory.stat", "inactive_file 9\ntotal_inactive_file 100000\n");
  put("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  put("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "-1\n");
  put("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(here().memory_bytes, 1600000U);
  const unsigned all = here().cores;
  put("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "90000\n");
  EXPECT_EQ(here().cores, 1U);
  put("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "100000000\n");
  EXPECT_EQ(here().cores, all);
}

TEST_F(ResourcesTest, NonsenseSetsNoLimit) {
  put("proc/self/cgroup", "nonsense\n0::\n::\n0:relative\n");
  put("sys/fs/cgroup/memory.max", "many\n");
  put("sys/fs/cgroup/cpu.max", "1 0\n");
  EXPECT_EQ(here().memory_bytes, 0U);
  EXPECT_GE(here().cores, 1U);
}

}  // namespace
}  // namespace mxjit
