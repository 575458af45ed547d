// The layers of the cubin cache: memory, one writable root, ordered read-only directories and bundles, then
// the compiler.
#pragma once

#include <atomic>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cache/entry.hpp"
#include "codegen/descriptor.hpp"

namespace mxjit::cache {

struct Options {
  std::optional<std::filesystem::path> root;  // writable root; none: memory only
  std::vector<std::filesystem::path> layers;  // read-only directories or bundle files, in search order
  bool forbid_compile = false;
  bool trust_root = false;
  std::string nvrtc_path;

  /// From MXJIT_CACHE_DIR, XDG_CACHE_HOME, HOME; MXJIT_BUNDLE_PATH; MXJIT_COMPILE; MXJIT_CACHE_TRUST_ROOT;
  /// MXJIT_NVRTC.
  static Options from_environment();
};

struct Counters {
  std::atomic<std::uint64_t> memory_hits{0}, root_hits{0}, layer_hits{0}, compiles{0}, publishes{0},
      publish_failures{0}, quarantined{0};
  std::atomic<std::uint64_t> compile_us{0}, read_us{0};
};

struct Explanation {
  bool hit = false;
  std::string key;                   // hex
  std::string layer;                 // "memory", the directory or the bundle; empty on a miss
  std::string build;                 // of the entry found
  std::string nearest_key;           // empty when the cache holds nothing of this template
  std::vector<std::string> differs;  // fields of the nearest descriptor that differ
  std::string reason;                // one sentence
};

struct Stats {
  std::uint64_t entries = 0, bytes = 0;
  struct Bad {
    std::string path, reason;
  };
  std::vector<Bad> bad;
};

class Cache {
 public:
  explicit Cache(Options options);
  ~Cache();

  /// The entry for `descriptor`: from a layer, else compiled and published. One compile a key in this
  /// process; a hit never waits for another key. Throws Error(compile_forbidden) with the nearest entry and
  /// the prewarm line, or the compiler's error.
  std::shared_ptr<const Entry> get(const codegen::KernelDescriptor& descriptor);
  /// A layer's entry, or null: never compiles.
  std::shared_ptr<const Entry> find(const codegen::KernelDescriptor& descriptor);

  /// Like get, and also makes sure that the writable root holds the entry. Returns true when it was compiled
  /// now. Throws Error(io) when it cannot be stored.
  bool prewarm(const codegen::KernelDescriptor& descriptor);

  Explanation explain(const codegen::KernelDescriptor& descriptor);
  std::vector<Entry> list() const;  // verified entries of the root, without cubins
  Stats verify(bool whole) const;   // whole: read and check every payload
  const Counters& counters() const;
  const Options& options() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace mxjit::cache
