// What tests of the C ABI share: tensors that nothing reads, a context, and how a call fails.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "capi/handles.hpp"
#include "mxjit/mxjit.h"
#include "unit/on_stub.hpp"

namespace mxjit::capi {

inline mxjit_tensor tensor(std::uintptr_t address, std::int32_t dtype,
                           const std::vector<std::int64_t>& shape) {
  mxjit_tensor made = MXJIT_NO_TENSOR;
  made.data = reinterpret_cast<void*>(address);
  made.dtype = dtype;
  made.rank = static_cast<std::int32_t>(shape.size());
  for (std::size_t i = 0; i < shape.size(); ++i) made.shape[i] = shape[i];
  return made;
}

inline constexpr mxjit_stream stream = nullptr;

// The last call failed so, for the reason that the thread remembers.
inline void expect_failed(mxjit_status came, mxjit_status expected, const std::string& argument) {
  EXPECT_EQ(came, expected) << mxjit_status_name(came) << ": " << mxjit_last_message();
  EXPECT_EQ(mxjit_last_status(), expected);
  EXPECT_EQ(mxjit_last_argument(), argument) << mxjit_last_message();
  EXPECT_STRNE(mxjit_last_message(), "");
}
inline void expect_refused(mxjit_status came, const std::string& argument) {
  expect_failed(came, MXJIT_INVALID_ARGUMENT, argument);
}

/// A context on the stub's device, which forgets what earlier tests did.
class OnStub : public ::testing::Test {
 protected:
  void SetUp() override {
    driver::stub().reset();
    driver::stub_api().ctx_set_current(nullptr);
    handle_.context = test::stub_context({}, compiler_);
  }

  std::shared_ptr<test::FakeCompiler> compiler_ = std::make_shared<test::FakeCompiler>();
  mxjit_context handle_;
  mxjit_context* const context_ = &handle_;
};

}  // namespace mxjit::capi
