// The GPU that the device tests share, and the fixture that skips, with the reason, where there is none.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>

#include "dispatch/context_state.hpp"
#include "driver/device_buffer.hpp"
#include "driver/device_context.hpp"
#include "mxjit/context.hpp"

namespace mxjit::device {

class Machine {
 public:
  /// Made by the first call, on the primary context of device 0.
  static Machine& get();
  /// Gives everything up; the next get() starts anew. For tests that reset the context.
  static void forget();

  const driver::Api& api() const { return device_->api(); }
  const driver::DeviceContext& device() const { return *device_; }
  Context& context() const { return *context_; }
  cache::Cache& cache() const { return *cache_; }
  /// Another Context of the same device and cache, with nothing loaded.
  std::unique_ptr<Context> cold_context() const;
  /// The calling thread's: that of its OwnStream, else one that all threads share.
  CUstream stream() const;
  void synchronize() const;
  /// What `launch` puts on that stream.
  driver::OwnedGraphExec captured(const std::function<void()>& launch,
                                  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL) const;
  /// Runs the graph and waits.
  void run(const driver::OwnedGraphExec& graph) const;

 private:
  Machine();

  std::shared_ptr<const driver::DeviceContext> device_;
  std::shared_ptr<cache::Cache> cache_;
  std::unique_ptr<Context> context_;
  driver::OwnedStream stream_;
};

/// While it lives, this thread has the machine's context current and a stream to itself.
class OwnStream {
 public:
  OwnStream();
  ~OwnStream();
  OwnStream(const OwnStream&) = delete;
  OwnStream& operator=(const OwnStream&) = delete;

 private:
  driver::ScopedCurrent scope_;
  driver::OwnedStream stream_;
};

/// True when MXJIT_DEVICE_SMALL asks for small sizes and few repeats, as under the sanitizer.
bool small();

class DeviceTest : public ::testing::Test {
 protected:
  void SetUp() override;
};

}  // namespace mxjit::device
