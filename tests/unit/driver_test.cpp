// The driver layer on the stub driver: contexts, loads and what they promise about captures.
#include <gtest/gtest.h>

#include <thread>

#include "driver/device_buffer.hpp"
#include "driver/loaded_kernel.hpp"
#include "driver/stub.hpp"
#include "mxjit/error.hpp"

namespace mxjit::driver {
namespace {

class Driver : public ::testing::Test {
 protected:
  void SetUp() override {
    stub().reset();
    stub_api().ctx_set_current(nullptr);
  }
  const Api& api_ = stub_api();
};

TEST_F(Driver, WhyNoGpuAgreesWithTheTable) {
  if (!why_no_gpu().empty()) {
    EXPECT_THROW(
        {
          int count = 0;
          check(api(), api().device_get_count(&count), "cuDeviceGetCount");
          if (count == 0) throw Error(ErrorCode::unavailable, "no device");
        },
        Error);
  } else {
    EXPECT_NE(api().launch_kernel_ex, nullptr);
  }
}

TEST_F(Driver, CheckNamesTheCallAndTellsALostContext) {
  EXPECT_NO_THROW(check(api_, CUDA_SUCCESS, "cuMemAlloc"));
  try {
    check(api_, CUDA_ERROR_OUT_OF_MEMORY, "cuMemAlloc");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::driver);
    EXPECT_NE(std::string(error.what()).find("cuMemAlloc failed"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("(2)"), std::string::npos) << error.what();
  }
  try {
    check(api_, CUDA_ERROR_CONTEXT_IS_DESTROYED, "cuLaunchKernelEx");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::context_lost);
  }
}

TEST_F(Driver, TakesThePrimaryContextWhereNoneIsCurrentAndGivesItBack) {
  {
    const auto context = DeviceContext::current(api_);
    EXPECT_EQ(stub().retained[0], 1);
    EXPECT_TRUE(context->is_current());
    EXPECT_EQ(context->facts().target, "sm_90a");
    EXPECT_EQ(context->facts().sm_count, 132);
  }
  EXPECT_EQ(stub().retained[0], 0);
}

TEST_F(Driver, TakesTheCurrentContextWithoutRetainingIt) {
  const auto primary = DeviceContext::primary(api_, 1);
  const auto context = DeviceContext::current(api_);
  EXPECT_EQ(context->handle(), primary->handle());
  EXPECT_EQ(context->device(), 1);
  EXPECT_EQ(stub().retained[1], 1);
}

TEST_F(Driver, AResetContextIsLost) {
  const auto context = DeviceContext::primary(api_, 0);
  stub().reset_context(0);
  EXPECT_FALSE(context->is_current());
  try {
    const ScopedCurrent scope(*context);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::context_lost);
  }
}

TEST_F(Driver, ScopedCurrentRestoresWhatWasCurrent) {
  const auto first = DeviceContext::primary(api_, 0);
  const auto second = DeviceContext::primary(api_, 1);
  {
    const ScopedCurrent scope(*first);
    EXPECT_TRUE(first->is_current());
  }
  EXPECT_TRUE(second->is_current());
  std::thread([&] {
    {
      const ScopedCurrent scope(*first);
      EXPECT_TRUE(first->is_current());
    }
    CUcontext current = first->handle();
    api_.ctx_get_current(&current);
    EXPECT_EQ(current, nullptr);
  }).join();
}

TEST_F(Driver, LoadsACubinOnceInRelaxedCaptureMode) {
  Libraries libraries;
  const auto context = DeviceContext::primary(api_, 0);
  const Digest key{1}, other{2};
  const std::uint8_t cubin[4] = {};
  const LoadedKernel kernel =
      libraries.load(*context, key, cubin, "k", {.threads = 128, .shared_bytes = 1024});
  EXPECT_EQ(kernel.blocks_per_sm, 2);
  EXPECT_EQ(kernel.threads, 128);
  EXPECT_FALSE(libraries.find(*context, other));
  ASSERT_TRUE(libraries.find(*context, key));
  EXPECT_EQ(libraries.find(*context, key)->shared_bytes, 1024);
  libraries.load(*context, key, cubin, "k", {.threads = 128, .shared_bytes = 1024});
  EXPECT_EQ(stub().library_loads, 1U);
  EXPECT_EQ(stub().function_loads, 1U);
  const auto second = DeviceContext::primary(api_, 1);
  EXPECT_FALSE(libraries.find(*second, key)) << "loaded on device 0 only";
  libraries.load(*second, key, cubin, "k", {.threads = 128, .shared_bytes = 1024});
  EXPECT_EQ(stub().library_loads, 1U);
  EXPECT_EQ(stub().function_loads, 2U);
  libraries.load(*context, other, cubin, "k", {.threads = 128});
  EXPECT_EQ(stub().library_loads, 2U);
  EXPECT_EQ(stub().strict_loads, 0U);
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  api_.thread_exchange_capture_mode(&mode);
  EXPECT_EQ(mode, CU_STREAM_CAPTURE_MODE_GLOBAL) << "the thread's capture mode was not put back";
}

TEST_F(Driver, RefusesMoreSharedMemoryThanTheDeviceGivesABlock) {
  Libraries libraries;
  const auto context = DeviceContext::primary(api_, 0);
  const std::uint8_t cubin[4] = {};
  try {
    libraries.load(*context, Digest{}, cubin, "k", {.threads = 128, .shared_bytes = 232449});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    EXPECT_NE(std::string(error.what()).find("232448"), std::string::npos) << error.what();
  }
}

TEST_F(Driver, BuffersHoldWhatIsWritten) {
  const OwnedStream stream = make_stream(api_);
  DeviceBuffer buffer(api_, 8);
  buffer.fill(0xA5, stream.get());
  const std::uint8_t written[2] = {1, 2};
  buffer.write(written, 2, stream.get(), 3);
  std::array<std::uint8_t, 8> read{};
  buffer.read(read.data(), read.size(), stream.get());
  EXPECT_EQ(read, (std::array<std::uint8_t, 8>{0xA5, 0xA5, 0xA5, 1, 2, 0xA5, 0xA5, 0xA5}));
  DeviceBuffer empty(api_, 0);
  EXPECT_EQ(empty.data(), nullptr);
  EXPECT_NO_THROW(empty.fill(1, stream.get()));
}

}  // namespace
}  // namespace mxjit::driver
