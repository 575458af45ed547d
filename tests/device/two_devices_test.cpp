// Two GPUs of one host in one process, a thread each. Skipped where there is one.
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "device/both_axes.hpp"
#include "device/machine.hpp"
#include "device/problems.hpp"
#include "dispatch/run.hpp"
#include "reference/reference.hpp"

namespace mxjit::device {
namespace {

class TwoDevices : public DeviceTest {};

TEST_F(TwoDevices, ServeTwoThreadsAtOnce) {
  const driver::Api& api = Machine::get().api();
  int count = 0;
  driver::check(api, api.device_get_count(&count), "cuDeviceGetCount");
  if (count < 2) GTEST_SKIP() << "one GPU here";
  constexpr int calls = 200, extents = 10;
  std::vector<std::jthread> threads;
  for (int ordinal = 0; ordinal < 2; ++ordinal)
    threads.emplace_back([&api, ordinal] {
      const auto device = driver::DeviceContext::primary(api, ordinal);
      const driver::ScopedCurrent current(*device);
      Context context;
      Random random(51U + static_cast<unsigned>(ordinal));
      // The same kernel, and plans that come and go between the other thread's.
      for (int i = 0; i < calls; ++i) {
        const problem::Problem problem = both_axes_problem(1 + 37 * (i % extents), columns);
        const TensorMap inputs = make_inputs(problem, random);
        expect_equal(dispatch::run_on_device(context, problem, inputs), reference::run(problem, inputs));
      }
    });
}

}  // namespace
}  // namespace mxjit::device
