// Traces on a real driver: what the environment asks for is recorded, and what was loaded needs no more.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "device/both_axes.hpp"
#include "device/guarded.hpp"
#include "device/machine.hpp"
#include "device/problems.hpp"
#include "dispatch/replay.hpp"
#include "problem/trace.hpp"
#include "reference/reference.hpp"

namespace mxjit::device {
namespace {

using problem::Problem;
namespace fs = std::filesystem;

class TraceOnDevice : public DeviceTest {
 protected:
  void TearDown() override {
    ::unsetenv("MXJIT_TRACE");
    fs::remove(file_);
  }
  std::string text() const {
    std::ifstream in(file_, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  const fs::path file_ = fs::temp_directory_path() / ("mxjit-trace-" + std::to_string(::getpid()));
};

TEST_F(TraceOnDevice, RecordedLoadedAndReplayed) {
  const Machine& machine = Machine::get();
  Random random(60);
  const Problem problem = both_axes_problem(rows, columns);
  const TensorMap inputs = make_inputs(problem, random);
  ::setenv("MXJIT_TRACE", file_.c_str(), 1);
  {
    Context context;
    GuardedProblem guarded(problem, inputs);
    for (int i = 0; i < 3; ++i) guarded.launch(context, machine.stream());
    machine.synchronize();
  }
  ::unsetenv("MXJIT_TRACE");
  const std::string trace = text();
  ASSERT_EQ(problem::parse_trace(trace).size(), 1U) << trace;

  // Nothing but a launch is left to do: a capture takes the first call.
  const auto context = machine.cold_context();
  context->load(trace);
  auto& state = dispatch::ContextAccess::state(*context);
  const driver::Loads loads = state.libraries->loads();
  const std::uint64_t compiles = state.cache->counters().compiles;
  EXPECT_GT(loads.functions, 0U);
  GuardedProblem guarded(problem, inputs);
  machine.run(machine.captured([&] { guarded.launch(*context, machine.stream()); }));
  expect_equal(guarded.read(), reference::run(problem, inputs));
  for (const Problem& traced : problem::parse_trace(trace)) dispatch::replay(*context, traced);
  EXPECT_EQ(state.libraries->loads().libraries, loads.libraries);
  EXPECT_EQ(state.libraries->loads().functions, loads.functions);
  EXPECT_EQ(state.cache->counters().compiles, compiles);
}

}  // namespace
}  // namespace mxjit::device
