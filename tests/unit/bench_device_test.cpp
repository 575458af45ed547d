// The benchmarks' device code and timers, on the stub driver: what can be known without a GPU.
#include <gtest/gtest.h>

#include "bench/device_program.hpp"
#include "bench/device_source.hpp"
#include "bench/device_timer.hpp"
#include "bench/host_timer.hpp"
#include "codegen/with_nvrtc.hpp"
#include "driver/stub.hpp"
#include "mxjit/error.hpp"

namespace mxjit::bench {
namespace {

TEST(BenchDevice, SourceCompilesWithoutHeaders) {
  if (const std::string why = test::why_no_nvrtc(); !why.empty()) GTEST_SKIP() << why;
  EXPECT_NO_THROW(DeviceProgram(driver::stub_api(), device_source, "sm_90a"));
  EXPECT_THROW(DeviceProgram(driver::stub_api(), "extern \"C\" __global__ void empty() { wrong; }", "sm_90a"),
               Error);
}

TEST(BenchDevice, EveryJobOfARoundGivesASampleALaunch) {
  DeviceTimer timer(driver::stub_api());
  int captured = 0;
  const std::size_t four = timer.add(4, [&](int i, CUstream) { captured += i; });
  const std::size_t one = timer.add(1, [](int, CUstream) {});
  EXPECT_EQ(captured, 0 + 1 + 2 + 3);
  int busy = 0;
  timer.measure(3, [&] { ++busy; });
  EXPECT_EQ(busy, 3);
  // The stub's events are one millisecond apart.
  EXPECT_EQ(timer.samples(four), (std::vector<double>{250, 250, 250}));
  EXPECT_EQ(timer.samples(one), (std::vector<double>{1000, 1000, 1000}));
}

TEST(BenchHost, RoundsAlternateAndTheFirstIsDropped) {
  HostTimer timer;
  std::string order;
  const std::size_t a = timer.add([&](int calls) { return order += 'a', calls * 2e-6; });
  const std::size_t b = timer.add([&](int calls) { return order += 'b', calls * 5e-6; });
  timer.measure(2, 10);
  EXPECT_EQ(order, "abbaab");
  ASSERT_EQ(timer.samples(a).size(), 2U);
  EXPECT_DOUBLE_EQ(timer.samples(a)[0], 2);
  EXPECT_DOUBLE_EQ(timer.samples(b)[1], 5);
}

}  // namespace
}  // namespace mxjit::bench
