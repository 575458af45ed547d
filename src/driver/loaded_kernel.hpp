// Cubins made ready on a context: library, function, attributes and occupancy, all at load.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/sha256.hpp"
#include "driver/device_context.hpp"

namespace mxjit::driver {

/// When a grid may start. Early: before the grid ahead of it on the stream has ended. Every kernel waits for
/// that end before it touches memory (kernels/launch/entry.cuh), so that only the way to there is early.
enum class Start : bool { in_order, early };

/// A kernel ready to launch on one context.
struct LoadedKernel {
  CUfunction function = nullptr;
  int threads = 0;        // a block
  int shared_bytes = 0;   // dynamic, a block
  int blocks_per_sm = 0;  // resident at once with these threads and shared bytes
  Start start = Start::in_order;
};

/// What a cubin must be launched with.
struct KernelLimits {
  int threads = 0;
  int shared_bytes = 0;
};

/// Driver calls that loaded something.
struct Loads {
  std::uint64_t libraries = 0, functions = 0;
};

/// The cubins that a process has loaded. None is ever unloaded: a captured graph may hold its function, and a
/// context made later finds it here again. Thread-safe.
class Libraries {
 public:
  /// The process's own, for the driver's api().
  static std::shared_ptr<Libraries> process();

  /// Makes the kernel `symbol` of `cubin` (named by `key`) ready on `context`, which must be current. Neither
  /// this thread's nor another thread's stream capture is disturbed. Throws Error(driver), Error(unsupported)
  /// when the device cannot give a block the threads and shared memory.
  LoadedKernel load(const DeviceContext& context, const Digest& key, std::span<const std::uint8_t> cubin,
                    const std::string& symbol, const KernelLimits& limits);

  /// The kernel of `key` if it is ready on `context`. Makes no driver call.
  std::optional<LoadedKernel> find(const DeviceContext& context, const Digest& key);

  Loads loads() const { return {library_loads_, function_loads_}; }

 private:
  using ContextKey = std::pair<unsigned long long, Digest>;

  std::mutex mutex_;
  std::map<Digest, CUlibrary> libraries_;
  std::map<ContextKey, LoadedKernel> kernels_;
  std::atomic<std::uint64_t> library_loads_{0}, function_loads_{0};
};

}  // namespace mxjit::driver
