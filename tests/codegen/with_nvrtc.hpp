// NVRTC for tests, which skip, with the reason, where there is none.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/target.hpp"
#include "compile/nvrtc.hpp"
#include "loops.hpp"
#include "mxjit/error.hpp"

namespace mxjit::test {

/// Empty where there is one.
inline std::string why_no_nvrtc() {
  try {
    compile::Nvrtc::open();
    return {};
  } catch (const Error& error) {
    return std::string("no NVRTC here: ") + error.what();
  }
}

/// The targets to compile a test's `turn`th kernel for: sm_90a and one of the others in turn, with
/// MXJIT_LONG=1 all. sm_100a and sm_103a get the same registers of each kernel, or nearly.
inline std::vector<std::string_view> targets_in_turn(std::size_t turn) {
  const auto all = codegen::targets();
  if (long_tests()) return {all.begin(), all.end()};
  const std::size_t others = all.size() - 1;
  return {all[0], all[1 + (turn + turn / others) % others]};
}

template <class Test = testing::Test>
class WithNvrtc : public Test {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_nvrtc(); !why.empty()) GTEST_SKIP() << why;
    nvrtc_ = compile::Nvrtc::open();
  }

  std::shared_ptr<compile::Nvrtc> nvrtc_;
};

}  // namespace mxjit::test
