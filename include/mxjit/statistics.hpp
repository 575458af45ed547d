// What a context's cache has done, in counts and in time.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace mxjit {

/// Counts since the cache was made; they only grow. Each is exact; together they are no snapshot while other
/// threads work. A launch that is planned already counts nowhere: it asks no cache.
struct Statistics {
  struct Layer {
    std::string path;  ///< as it is searched: absolute
    std::uint64_t hits = 0;
  };

  // Where look-ups ended. One that waited for another thread's compilation is a memory hit.
  std::uint64_t memory_hits = 0;
  std::uint64_t root_hits = 0;
  std::vector<Layer> layers;  ///< the read-only directories and bundles, in search order
  std::uint64_t compiles = 0;
  std::uint64_t compile_failures = 0;  ///< without a compiler, too

  std::uint64_t loads = 0;      ///< kernels made ready on the device by this context
  std::uint64_t publishes = 0;  ///< entries stored in the root
  std::uint64_t publish_failures =
      0;                          ///< not stored, and the kernel runs from memory; the first is a warning
  std::uint64_t quarantined = 0;  ///< bad entries of the root, set aside
  std::uint64_t refused = 0;      ///< bad entries of layers and of a root that cannot be written; layers that
                                  ///< cannot be used, each time
  std::uint64_t evicted = 0;      ///< entries removed by a collection that this cache was asked for
  std::uint64_t lock_waits = 0;   ///< another process was compiling the same kernel
  std::uint64_t lock_failures = 0;  ///< compiled without the lock: work, perhaps, done twice

  // Added up over threads.
  std::chrono::nanoseconds look_up_time{};  ///< in root and layers, verification included
  std::chrono::nanoseconds compile_time{};
  std::chrono::nanoseconds publish_time{};
  std::chrono::nanoseconds load_time{};

  std::uint64_t layer_hits() const {
    std::uint64_t hits = 0;
    for (const Layer& layer : layers) hits += layer.hits;
    return hits;
  }
  /// Kernels that a layer had, memory included.
  std::uint64_t hits() const { return memory_hits + root_hits + layer_hits(); }
};

}  // namespace mxjit
