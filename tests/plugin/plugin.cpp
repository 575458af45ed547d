// A plugin that brings mxjit along: what a program opens, uses and closes again.
#include "base/log.hpp"
#include "mxjit/mxjit.h"
#include "unit/on_stub.hpp"

/// Compiles, loads and launches on the stub driver, from several threads, and fails a call of the C ABI.
/// Returns the launches made, or -1.
extern "C" __attribute__((visibility("default"))) int mxjit_test_plugin_use() {
  using namespace mxjit;
  try {
    int lines = 0;
    set_log_sink([&](LogLevel, std::string_view) { ++lines; }, LogLevel::debug);
    const auto context = test::stub_context();
    context->quantize({}, test::row_args(100, 200), nullptr);
    const QuantizePlan plan = context->plan({}, test::row_args(100, 200));
    plan.launch(test::row_args(100, 200), nullptr);
    set_log_sink({});
    if (mxjit_quantize(nullptr, nullptr, nullptr, nullptr) != MXJIT_INVALID_ARGUMENT || lines < 2) return -1;
    return static_cast<int>(driver::stub().launches);
  } catch (...) {
    return -1;
  }
}
