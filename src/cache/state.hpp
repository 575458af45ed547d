// What a Cache is made of; shared by its files.
#pragma once

#include <cstring>
#include <future>
#include <mutex>
#include <optional>
#include <set>
#include <shared_mutex>
#include <unordered_map>

#include "cache/cache.hpp"
#include "cache/root.hpp"

namespace mxjit::cache {

struct DigestHash {
  std::size_t operator()(const Digest& digest) const {
    std::size_t hash = 0;  // a digest's bytes are as good as any hash of them
    std::memcpy(&hash, digest.data(), sizeof hash);
    return hash;
  }
};

enum class Origin { memory, root, layer, compiler };

struct Got {
  std::shared_ptr<const Entry> entry;
  Origin origin = Origin::memory;
  bool stored = false;  // the root holds it
};

struct Cache::State {
  State(Options given, const Seams& seams);

  Options options;
  FileSystem& files;
  std::shared_ptr<compile::Compiler> compiler;
  std::optional<Root> root;
  Counters counters;
  std::vector<std::atomic<std::uint64_t>> hits_of_layers;

  Got get(const codegen::KernelDescriptor& descriptor, std::string_view problem);
  std::shared_ptr<const Entry> find_in_memory(const Digest& key);
  void remember(const std::shared_ptr<const Entry>& entry);
  /// From root and layers; sets bad ones of the root aside.
  std::optional<Got> find_on_disk(const Digest& key);
  std::optional<Entry> find_in_root(const Digest& key);
  /// Publishes, or warns and counts. Returns 0 or -errno.
  int store(const Entry& entry);

  Wanted wanted(const Digest& key, bool in_root);
  const std::vector<std::unique_ptr<Layer>>& layers();
  void warn_once(const std::string& subject, const std::string& message);
  std::shared_ptr<const configure::TuningTable> tuning();
  /// The root's own table as it is on the disk; one that cannot be used goes to `bad`.
  configure::TuningTable tuning_of_root(std::vector<Bad>& bad);
  Explanation explain(const codegen::KernelDescriptor& descriptor);
  /// The whole text for a kernel that is nowhere while compiling is forbidden.
  std::string missing(const codegen::KernelDescriptor& descriptor, std::string_view problem);

 private:
  Got load_or_compile(const codegen::KernelDescriptor& descriptor, const Digest& key,
                      std::string_view problem);
  Got compile(const codegen::KernelDescriptor& descriptor, const Digest& key);
  void dispose(std::vector<Bad>& bad, bool of_root);

  std::shared_mutex memory_mutex_;
  std::unordered_map<Digest, std::shared_ptr<const Entry>, DigestHash> memory_;
  std::mutex flights_mutex_;
  std::unordered_map<Digest, std::shared_future<Got>, DigestHash> flights_;
  std::mutex tuning_mutex_;
  std::shared_ptr<const configure::TuningTable> tuning_;  // null: not read yet
  std::once_flag layers_once_;
  std::vector<std::unique_ptr<Layer>> layers_;
  std::mutex warned_mutex_;
  std::set<std::string> warned_;
};

}  // namespace mxjit::cache
