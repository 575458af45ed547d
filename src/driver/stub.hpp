// A driver without a device: every entry point succeeds and does next to nothing. Measures the host cost of a
// call by itself, and lets tests count, delay and fail driver calls where there is no GPU.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "driver/driver.hpp"

namespace mxjit::driver {

/// What the stub counts and how it answers. One a process; `reset` puts it back.
struct Stub {
  static constexpr int devices = 2;

  std::atomic<std::uint64_t> launches{0};
  std::atomic<std::uint64_t> early_starts{0};  // launches that need not wait for the end of what is ahead
  std::atomic<std::uint64_t> library_loads{0};
  std::atomic<std::uint64_t> function_loads{0};
  std::atomic<std::uint64_t> capture_queries{0};
  std::atomic<std::uint64_t> strict_loads{0};  // library loads outside relaxed capture mode
  std::atomic<CUresult> launch_result{CUDA_SUCCESS};
  std::atomic<CUstreamCaptureStatus> capture{CU_STREAM_CAPTURE_STATUS_NONE};  // of every stream
  std::array<std::atomic<unsigned long long>, devices>
      context_ids{};  // of the primary contexts; 0: destroyed
  std::array<std::atomic<int>, devices> retained{};

  void reset();
  /// As a reset primary context: the same handle, another id.
  void reset_context(int device);
};

Stub& stub();
/// A table of the stub's entry points: an H200 of 132 SMs. Device memory is host memory.
const Api& stub_api();

}  // namespace mxjit::driver
