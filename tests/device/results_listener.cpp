// Writes what the run came to into the file that MXJIT_DEVICE_RESULTS names.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "bench/machine.hpp"
#include "device/guarded.hpp"
#include "device/machine.hpp"
#include "source_digest.hpp"

namespace mxjit::device {
namespace {

class Results : public testing::EmptyTestEventListener {
  void OnTestProgramEnd(const testing::UnitTest& run) override {
    const char* path = std::getenv("MXJIT_DEVICE_RESULTS");
    if (path == nullptr || *path == '\0') return;
    const char* suite = std::getenv("MXJIT_DEVICE_SUITE");
    nlohmann::ordered_json json;
    json["suite"] = suite != nullptr ? suite : "device";
    for (const char* field : {"gpu", "driver", "cuda", "nvrtc"}) json[field] = nullptr;
    const std::string reason = driver::why_no_gpu();
    if (reason.empty()) {
      const bench::Machine machine = bench::describe_machine(driver::api(), 0);
      json["gpu"] = machine.gpu;
      json["driver"] = machine.driver;
      json["cuda"] = machine.cuda;
      json["nvrtc"] = machine.nvrtc;
    } else {
      json["reason"] = reason;
    }
    json["digest"] = source_digest;
    json["passed"] = run.successful_test_count();
    json["failed"] = run.failed_test_count();
    json["skipped"] = run.skipped_test_count();
    json["comparisons"] = comparisons();
    auto& tests = json["tests"];
    for (int s = 0; s < run.total_test_suite_count(); ++s) {
      const testing::TestSuite& suite_of = *run.GetTestSuite(s);
      for (int t = 0; t < suite_of.total_test_count(); ++t) {
        const testing::TestInfo& test = *suite_of.GetTestInfo(t);
        if (!test.should_run()) continue;
        const testing::TestResult& result = *test.result();
        auto& entry = tests[std::string(suite_of.name()) + "." + test.name()];
        entry = {{"result", result.Skipped()  ? "skipped"
                            : result.Passed() ? "passed"
                                              : "failed"},
                 {"seconds", static_cast<double>(result.elapsed_time()) / 1000.0}};
        for (int p = 0; p < result.test_property_count(); ++p)  // RecordProperty's
          entry[result.GetTestProperty(p).key()] = result.GetTestProperty(p).value();
      }
    }
    std::ofstream(path) << json.dump(2) << '\n';
  }
};

// GoogleTest owns the listener.
[[maybe_unused]] const bool registered = [] {
  testing::UnitTest::GetInstance()->listeners().Append(new Results);
  return true;
}();

}  // namespace
}  // namespace mxjit::device
