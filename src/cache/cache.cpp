#include "cache/cache.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "base/log.hpp"
#include "base/stopwatch.hpp"
#include "cache/key_lock.hpp"
#include "cache/state.hpp"
#include "compile/nvrtc.hpp"
#include "mxjit/error.hpp"

namespace mxjit::cache {
Cache::State::State(Options given, const Seams& seams)
    : options(std::move(given)),
      files(seams.files != nullptr ? *seams.files : host_files()),
      compiler(seams.compiler != nullptr ? seams.compiler : compile::nvrtc_compiler(options.nvrtc_path)),
      hits_of_layers(options.layers.size()) {
  // What is relative is so to the working folder of now.
  const auto settle = [](std::filesystem::path& path) {
    std::error_code error;
    if (auto absolute = std::filesystem::absolute(path, error); !error) path = std::move(absolute);
  };
  std::for_each(options.layers.begin(), options.layers.end(), settle);
  if (options.root) settle(*options.root);
  if (options.root) root.emplace(files, options.root->string(), options.trust_root);
}

const std::vector<std::unique_ptr<Layer>>& Cache::State::layers() {
  std::call_once(layers_once_, [this] {
    for (const auto& path : options.layers) layers_.push_back(open_layer(files, path.string()));
  });
  return layers_;
}

void Cache::State::warn_once(const std::string& subject, const std::string& message) {
  {
    const std::scoped_lock lock(warned_mutex_);
    if (!warned_.insert(subject).second) return;
  }
  log(LogLevel::warn, message);
}

std::shared_ptr<const Entry> Cache::State::find_in_memory(const Digest& key) {
  const std::shared_lock lock(memory_mutex_);
  const auto found = memory_.find(key);
  return found == memory_.end() ? nullptr : found->second;
}

void Cache::State::remember(const std::shared_ptr<const Entry>& entry) {
  const std::scoped_lock lock(memory_mutex_);
  memory_[entry->key] = entry;
}

// With a compiler at hand the root holds that compiler's builds; what ships may be of another.
Wanted Cache::State::wanted(const Digest& key, bool in_root) {
  Wanted wanted{key, {}, true};
  if (options.forbid_compile) return wanted;
  wanted.compiler = compiler->identity();
  wanted.any_build = !in_root || wanted.compiler.empty();
  return wanted;
}

void Cache::State::dispose(std::vector<Bad>& bad, bool of_root) {
  for (const Bad& item : bad) {
    const bool aside = of_root && item.damaged && root->set_aside(item.path);
    ++(aside ? counters.quarantined : counters.refused);
    // A disk that fails says so once, whatever number of entries it keeps back.
    const std::string subject = of_root && !item.damaged ? root->path() : item.path;
    warn_once(subject,
              fmt::format("cache: {} {}: {}", aside ? "set aside" : "refused", item.path, item.reason));
  }
  bad.clear();
}

namespace {

void told(const Entry& entry, const std::string& layer) {
  if (!logs(LogLevel::debug)) return;
  log(LogLevel::debug, fmt::format("cache: {} for {} found in {}, built by {}", entry.symbol, entry.target,
                                   layer, entry.build));
}

}  // namespace

std::optional<Entry> Cache::State::find_in_root(const Digest& key) {
  if (!root || !root->exists()) return std::nullopt;
  const Stopwatch watch(counters.look_up_ns);
  std::vector<Bad> bad;
  auto entry = root->store().find(wanted(key, true), bad);
  dispose(bad, true);
  return entry;
}

std::optional<Got> Cache::State::find_on_disk(const Digest& key) {
  if (auto entry = find_in_root(key)) {
    ++counters.root_hits;
    told(*entry, root->path());
    return Got{std::make_shared<const Entry>(std::move(*entry)), Origin::root, true};
  }
  const Stopwatch watch(counters.look_up_ns);
  std::vector<Bad> bad;
  for (std::size_t i = 0; i < layers().size(); ++i) {
    auto entry = layers()[i]->find(wanted(key, false), bad);
    dispose(bad, false);
    if (!entry) continue;
    ++counters.layer_hits;
    ++hits_of_layers[i];
    told(*entry, layers()[i]->name());
    return Got{std::make_shared<const Entry>(std::move(*entry)), Origin::layer, false};
  }
  return std::nullopt;
}

int Cache::State::store(const Entry& entry) {
  const Stopwatch watch(counters.publish_ns);
  const int error = root->publish(entry);
  if (error == 0) {
    ++counters.publishes;
    return 0;
  }
  ++counters.publish_failures;
  warn_once(root->path(), fmt::format("cache root {} cannot be written ({}); kernels stay in memory",
                                      root->path(), error_text(error)));
  return error;
}

Got Cache::State::compile(const codegen::KernelDescriptor& descriptor, const Digest& key) {
  std::optional<KeyLock> lock;
  if (options.locks && root && root->make() == 0) {
    lock.emplace(files, root->lock_path(), key, options.lock_wait);
    if (lock->waited()) ++counters.lock_waits;
    if (!lock->held()) ++counters.lock_failures;
    // Another process may have published since the last look, or while this one waited.
    if (lock->held() || lock->waited()) {
      if (auto entry = find_in_root(key)) {
        ++counters.root_hits;
        return {std::make_shared<const Entry>(std::move(*entry)), Origin::root, true};
      }
    }
  }
  compile::Compiled compiled;
  try {
    const Stopwatch watch(counters.compile_ns);
    compiled = compiler->compile(descriptor);
    ++counters.compiles;
  } catch (...) {
    ++counters.compile_failures;
    throw;
  }
  log(LogLevel::info, fmt::format("cache: compiled {} for {} in {:.0f} ms", compiled.symbol,
                                  descriptor.target, compiled.milliseconds));
  if (compiled.resources.spill_bytes > 0) {
    log(LogLevel::warn, fmt::format("cache: {} spills {} bytes: {}", compiled.symbol,
                                    compiled.resources.spill_bytes, codegen::print(descriptor)));
  }
  Got got{std::make_shared<const Entry>(make_entry(descriptor, compiled)), Origin::compiler, false};
  if (root) got.stored = store(*got.entry) == 0;
  return got;
}

Got Cache::State::load_or_compile(const codegen::KernelDescriptor& descriptor, const Digest& key,
                                  std::string_view problem) {
  if (auto got = find_on_disk(key)) return *got;
  if (options.forbid_compile) throw Error(ErrorCode::compile_forbidden, missing(descriptor, problem));
  return compile(descriptor, key);
}

Got Cache::State::get(const codegen::KernelDescriptor& descriptor, std::string_view problem) {
  const Digest key = codegen::key(descriptor);
  if (auto entry = find_in_memory(key)) {
    ++counters.memory_hits;
    return {entry, Origin::memory, false};
  }
  std::promise<Got> promise;
  std::shared_future<Got> flight;
  {
    // Once more under the lock: a flight that landed meanwhile left its entry in memory.
    const std::scoped_lock lock(flights_mutex_);
    if (auto entry = find_in_memory(key)) {
      ++counters.memory_hits;
      return {entry, Origin::memory, false};
    }
    const auto found = flights_.find(key);
    if (found == flights_.end()) {
      flights_.emplace(key, promise.get_future().share());
    } else {
      flight = found->second;
    }
  }
  if (flight.valid()) {  // somebody's under way with this key
    Got got = flight.get();
    ++counters.memory_hits;
    got.origin = Origin::memory;
    return got;
  }
  const auto land = [&] {
    const std::scoped_lock lock(flights_mutex_);
    flights_.erase(key);
  };
  const HeldLog held;  // until the flight has landed
  try {
    Got got = load_or_compile(descriptor, key, problem);
    remember(got.entry);
    land();
    promise.set_value(got);
    return got;
  } catch (...) {
    land();
    promise.set_exception(std::current_exception());
    throw;
  }
}

Cache::Cache(Options options, const Seams& seams)
    : state_(std::make_unique<State>(std::move(options), seams)) {}
Cache::~Cache() = default;

std::shared_ptr<const Entry> Cache::get(const codegen::KernelDescriptor& descriptor,
                                        std::string_view problem) {
  return state_->get(descriptor, problem).entry;
}

std::shared_ptr<const Entry> Cache::find(const codegen::KernelDescriptor& descriptor) {
  const Digest key = codegen::key(descriptor);
  if (auto entry = state_->find_in_memory(key)) {
    ++state_->counters.memory_hits;
    return entry;
  }
  const auto got = state_->find_on_disk(key);
  if (!got) return nullptr;
  state_->remember(got->entry);
  return got->entry;
}

bool Cache::prewarm(const codegen::KernelDescriptor& descriptor, std::string_view problem) {
  if (!state_->root) {
    throw Error(ErrorCode::io, "prewarm: no writable cache root; give one with --cache or MXJIT_CACHE_DIR");
  }
  const Digest key = codegen::key(descriptor);
  if (auto entry = state_->find_in_root(key)) {
    ++state_->counters.root_hits;
    state_->remember(std::make_shared<const Entry>(std::move(*entry)));
    return false;
  }
  const Got got = state_->get(descriptor, problem);
  const bool compiled = got.origin == Origin::compiler;
  if (got.stored) return compiled;
  std::vector<Bad> bad;
  if (state_->root->exists() && state_->root->store().find({key, got.entry->compiler, false}, bad))
    return compiled;
  if (const int error = state_->store(*got.entry); error < 0) {
    throw Error(ErrorCode::io, fmt::format("prewarm: {} cannot be stored in {}: {}", got.entry->symbol,
                                           state_->root->path(), error_text(error)));
  }
  return compiled;
}

Explanation Cache::explain(const codegen::KernelDescriptor& descriptor) {
  return state_->explain(descriptor);
}
const Counters& Cache::counters() const { return state_->counters; }

Statistics Cache::statistics() const {
  const Counters& from = state_->counters;
  Statistics made;
  made.memory_hits = from.memory_hits;
  made.root_hits = from.root_hits;
  for (std::size_t i = 0; i < state_->hits_of_layers.size(); ++i)
    made.layers.push_back({state_->options.layers[i].string(), state_->hits_of_layers[i]});
  made.compiles = from.compiles;
  made.compile_failures = from.compile_failures;
  made.publishes = from.publishes;
  made.publish_failures = from.publish_failures;
  made.quarantined = from.quarantined;
  made.refused = from.refused;
  made.evicted = from.evicted;
  made.lock_waits = from.lock_waits;
  made.lock_failures = from.lock_failures;
  made.look_up_time = std::chrono::nanoseconds(from.look_up_ns);
  made.compile_time = std::chrono::nanoseconds(from.compile_ns);
  made.publish_time = std::chrono::nanoseconds(from.publish_ns);
  return made;
}

const Options& Cache::options() const { return state_->options; }

}  // namespace mxjit::cache
