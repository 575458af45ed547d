// The tuning table beside the entries: read with every layer, changed in the root.
#include <fmt/format.h>

#include "cache/key_lock.hpp"
#include "cache/state.hpp"
#include "codegen/descriptor.hpp"
#include "configure/gemm.hpp"
#include "mxjit/error.hpp"

namespace mxjit::cache {
namespace {

// The table in `text`; one that cannot be used goes to `bad`.
configure::TuningTable parsed(const std::optional<std::string>& text, const std::string& place,
                              std::vector<Bad>& bad) {
  if (!text) return {};
  try {
    return configure::parse_tuning(*text);
  } catch (const Error& error) {
    // One of another format is somebody's.
    bad.push_back({place, error.what(), error.code() != ErrorCode::unsupported});
    return {};
  }
}

}  // namespace

std::shared_ptr<const configure::TuningTable> Cache::State::tuning() {
  const auto known = [this] {
    const std::scoped_lock lock(tuning_mutex_);
    return tuning_;
  };
  if (auto table = known()) return table;
  auto table = std::make_shared<configure::TuningTable>();
  std::vector<Bad> bad;
  if (root && root->exists()) *table = tuning_of_root(bad);
  for (const auto& layer : layers()) table->add(parsed(layer->tuning(bad), layer->name() + ": tuning", bad));
  {
    const std::scoped_lock lock(tuning_mutex_);
    if (tuning_) return tuning_;  // another thread's, read at the same time
    tuning_ = std::move(table);
  }
  dispose(bad, false);  // logs, so that no lock is held
  return known();
}

configure::TuningTable Cache::State::tuning_of_root(std::vector<Bad>& bad) {
  return parsed(root->store().tuning(bad), root->store().tuning_path(), bad);
}

std::shared_ptr<const configure::TuningTable> Cache::tuning() { return state_->tuning(); }

configure::GemmTuning Cache::choices(const configure::Profile& profile, int sm_count) {
  const auto table = state_->tuning();
  const auto is_there = [&](const configure::TunedGemm& tuned) {
    const configure::GemmTraits traits = configure::gemm_traits(tuned.problem);
    const auto& tile = configure::gemm_tiles(traits)[static_cast<std::size_t>(tuned.tile)];
    return find({configure::dense_fp8_configuration(traits, tile), std::string(profile.target)}) != nullptr;
  };
  configure::GemmTuning made;
  if (const auto found = table->devices.find({std::string(profile.name), sm_count});
      found != table->devices.end())
    for (const auto& [of, tuned] : found->second.gemm)
      if (!state_->options.forbid_compile || is_there(tuned)) made.set(of, tuned.tile);
  return made;
}

void Cache::change_tuning(const std::function<void(configure::TuningTable&)>& change) {
  auto& root = state_->root;
  if (!root) throw Error(ErrorCode::io, "tuning: no writable cache root");
  const auto stored = [&](int error) {
    if (error < 0)
      throw Error(ErrorCode::io, fmt::format("tuning: {} cannot be written: {}", root->store().tuning_path(),
                                             error_text(error)));
  };
  stored(root->make());
  // Where there are no locks, the last of two that change the table at the same time has its way.
  const KeyLock lock(state_->files, root->lock_path(), sha256("tuning"), state_->options.lock_wait);
  std::vector<Bad> bad;
  configure::TuningTable table = state_->tuning_of_root(bad);
  for (const Bad& item : bad) {
    if (!item.damaged)
      throw Error(ErrorCode::io, fmt::format("tuning: {} cannot be read: {}", item.path, item.reason));
    root->set_aside(item.path);
  }
  change(table);
  stored(root->publish_tuning(configure::print(table)));
}

}  // namespace mxjit::cache
