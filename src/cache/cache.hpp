// The layers of the cubin cache: memory, one writable root, ordered read-only directories and bundles, then
// the compiler.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cache/entry.hpp"
#include "cache/layer.hpp"
#include "cache/options.hpp"
#include "codegen/descriptor.hpp"
#include "configure/tuning_table.hpp"
#include "mxjit/statistics.hpp"

namespace mxjit::cache {

/// See Statistics.
struct Counters {
  std::atomic<std::uint64_t> memory_hits{0}, root_hits{0}, layer_hits{0}, compiles{0}, compile_failures{0},
      publishes{0}, publish_failures{0}, quarantined{0}, refused{0}, evicted{0}, lock_waits{0},
      lock_failures{0};
  std::atomic<std::uint64_t> look_up_ns{0}, compile_ns{0}, publish_ns{0};
};

struct Explanation {
  bool hit = false;
  std::string key;          // hex
  std::string layer;        // "memory", the directory or the bundle; empty on a miss
  std::string build;        // of the entry found
  std::string nearest_key;  // empty when the cache holds nothing of this template
  std::string nearest_layer;
  std::vector<std::string> differs;  // what differs of the nearest: descriptor fields ("target", "threads"),
                                     // constants by name, "templates" or "build"
  std::string reason;                // one sentence
};

struct Stats {
  std::uint64_t entries = 0, bytes = 0;
  std::vector<Bad> bad;
};

struct Collected {
  std::uint64_t entries = 0, bytes = 0;  // removed
  std::uint64_t temporaries = 0, quarantined = 0;
  std::uint64_t entries_left = 0, bytes_left = 0;
};

struct Transfer {
  std::uint64_t entries = 0, bytes = 0;  // written
  std::uint64_t present = 0;             // import: were there already
  std::uint64_t tuned = 0;               // measured choices that came along
  std::vector<Bad> bad;                  // refused, one reason each
};

/// Thread-safe. Nothing on the disk is touched before the first call that needs it.
class Cache {
 public:
  explicit Cache(Options options, const Seams& seams = {});
  ~Cache();

  /// The entry for `descriptor`: from a layer, else compiled and published. One compile a key in this
  /// process, and among processes that share a root with working locks; a hit never waits for another key.
  /// What goes wrong on the disk costs a warning and a counter, not the entry. `problem`: the problem's JSON,
  /// for messages. Throws Error(compile_forbidden) with the nearest entry and the prewarm line, the
  /// compiler's error, or Error(invalid_argument) for an unsafe root.
  std::shared_ptr<const Entry> get(const codegen::KernelDescriptor& descriptor,
                                   std::string_view problem = {});
  /// A layer's entry, or null: never compiles.
  std::shared_ptr<const Entry> find(const codegen::KernelDescriptor& descriptor);

  /// Like get, and also makes sure that the writable root holds the entry. Returns true when it was compiled
  /// now. Throws Error(io) when it cannot be stored.
  bool prewarm(const codegen::KernelDescriptor& descriptor, std::string_view problem = {});

  /// Looks without changing anything, counters included.
  Explanation explain(const codegen::KernelDescriptor& descriptor);

  std::vector<Entry> list() const;  // entries of the root by key, without cubins
  Stats verify(bool whole) const;   // of the root; whole: read and check every payload
  /// Removes what is least recently used until the root is within both limits, stale temporaries, and what
  /// was set aside.
  Collected collect(std::uint64_t max_bytes, std::uint64_t max_entries = UINT64_MAX);
  /// Removes the entries whose key starts with `prefix` (at least 8 digits); returns how many.
  std::uint64_t remove(std::string_view prefix);
  /// Removes every entry.
  std::uint64_t clear();

  /// The measured choices of every layer; where two know a problem, the first in the search order goes
  /// before. Read once; a table that cannot be used costs a warning. Throws Error(invalid_argument) for an
  /// unsafe root.
  std::shared_ptr<const configure::TuningTable> tuning();
  /// The table's choices for such devices; where compilation is forbidden, but for those whose kernels are in
  /// no layer: a table may come without the kernels that it names.
  configure::GemmTuning choices(const configure::Profile& profile, int sm_count);
  /// Changes the root's own table as it is now, and publishes it. One that cannot be read is set aside.
  /// Throws Error(io) when it cannot be stored.
  void change_tuning(const std::function<void(configure::TuningTable&)>& change);

  /// Writes a bundle of the root's entries that this library can use, for `target` (empty: all), with the
  /// root's measured choices. Throws Error(io) when it cannot be written.
  Transfer export_bundle(const std::string& path, std::string_view target = {}) const;
  /// Publishes a bundle's entries in the root, and adds its measured choices to those there. Throws Error(io)
  /// when the file is no bundle or the root cannot be written.
  Transfer import_bundle(const std::string& path);

  const Counters& counters() const;
  /// The counters, and the hits of each layer. Loads are the context's to add.
  Statistics statistics() const;
  const Options& options() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace mxjit::cache
