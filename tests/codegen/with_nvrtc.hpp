// NVRTC for tests, which skip, with the reason, where there is none.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "compile/nvrtc.hpp"
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
