// Looking after a root: listing, verifying, collecting, shipping.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "cache/bundle.hpp"
#include "cache/state.hpp"
#include "mxjit/error.hpp"

namespace mxjit::cache {
namespace {

constexpr std::int64_t temporary_seconds = 3600;

struct File {
  std::string path;
  std::int64_t modified;
  std::uint64_t bytes;
};

// Least recently used first.
std::vector<File> files_by_use(FileSystem& files, const Store& store) {
  std::vector<File> all;
  for (const std::string& path : store.files()) {
    struct stat status {};
    if (files.status(path, status) < 0) continue;
    all.push_back({path, status.st_mtime, static_cast<std::uint64_t>(status.st_size)});
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const File& a, const File& b) { return a.modified < b.modified; });
  return all;
}

std::uint64_t empty_quarantine(FileSystem& files, const std::string& quarantine) {
  std::vector<std::string> names;
  files.list(quarantine, names);
  return static_cast<std::uint64_t>(std::count_if(names.begin(), names.end(), [&](const std::string& name) {
    return files.unlink(quarantine + "/" + name) == 0;
  }));
}

std::string digits_of(const std::string& path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

std::vector<Entry> Cache::list() const {
  std::vector<Entry> entries;
  std::vector<Bad> bad;
  auto& root = state_->root;
  if (!root || !root->exists()) return entries;
  root->store().each(
      false, [&](const Entry& entry, std::uint64_t) { entries.push_back(entry); }, bad);
  return entries;
}

Stats Cache::verify(bool whole) const {
  Stats stats;
  auto& root = state_->root;
  if (!root || !root->exists()) return stats;
  root->store().each(
      whole,
      [&](const Entry&, std::uint64_t bytes) {
        ++stats.entries;
        stats.bytes += bytes;
      },
      stats.bad);
  state_->tuning_of_root(stats.bad);
  return stats;
}

Collected Cache::collect(std::uint64_t max_bytes, std::uint64_t max_entries) {
  Collected done;
  auto& root = state_->root;
  if (!root || !root->exists()) return done;
  const std::vector<File> all = files_by_use(state_->files, root->store());
  done.entries_left = all.size();
  for (const File& file : all) done.bytes_left += file.bytes;
  for (const File& file : all) {
    if (done.bytes_left <= max_bytes && done.entries_left <= max_entries) break;
    const int error = state_->files.unlink(file.path);
    if (error < 0 && error != -ENOENT) continue;
    ++done.entries;
    done.bytes += file.bytes;
    --done.entries_left;
    done.bytes_left -= file.bytes;
  }
  state_->counters.evicted += done.entries;
  done.temporaries =
      static_cast<std::uint64_t>(sweep_temporaries(state_->files, root->path() + "/tmp", temporary_seconds));
  done.quarantined = empty_quarantine(state_->files, root->path() + "/quarantine");
  return done;
}

std::uint64_t Cache::remove(std::string_view prefix) {
  if (prefix.size() < 8 || prefix.find_first_not_of("0123456789abcdef") != std::string_view::npos) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("key: expected at least 8 hexadecimal digits, got \"{}\"", prefix), "key");
  }
  auto& root = state_->root;
  if (!root || !root->exists()) return 0;
  std::uint64_t removed = 0;
  for (const std::string& path : root->store().files()) {
    if (digits_of(path).starts_with(prefix) && state_->files.unlink(path) == 0) ++removed;
  }
  return removed;
}

std::uint64_t Cache::clear() {
  auto& root = state_->root;
  if (!root || !root->exists()) return 0;
  std::uint64_t removed = 0;
  for (const std::string& path : root->store().files()) {
    if (state_->files.unlink(path) == 0) ++removed;
  }
  return removed;
}

Transfer Cache::export_bundle(const std::string& path, std::string_view target) const {
  Transfer done;
  auto& root = state_->root;
  std::vector<std::string> images;
  if (root && root->exists()) {
    root->store().each(
        true,
        [&](const Entry& entry, std::uint64_t) {
          if (!target.empty() && entry.target != target) return;
          if (entry.templates != codegen::templates_digest()) {
            done.bad.push_back({root->store().path_of(entry.key, entry.compiler),
                                "entry: made from another version of the templates"});
            return;
          }
          images.push_back(serialize(entry));
        },
        done.bad);
  }
  configure::TuningTable tuning;
  if (root && root->exists()) {
    tuning = state_->tuning_of_root(done.bad);
    if (!target.empty()) tuning = tuning.of_target(target);
  }
  done.tuned = tuning.size();
  const std::string bundle = make_bundle(images, tuning.empty() ? "" : configure::print(tuning));
  const std::size_t slash = path.rfind('/');
  const std::string folder =
      slash == std::string::npos ? "." : path.substr(0, std::max<std::size_t>(slash, 1));
  if (const int error = publish_file(state_->files, folder, path, bundle, beside_prefix); error < 0) {
    throw Error(ErrorCode::io, fmt::format("bundle {} cannot be written: {}", path, error_text(error)));
  }
  done.entries = images.size();
  done.bytes = bundle.size();
  return done;
}

Transfer Cache::import_bundle(const std::string& path) {
  auto& root = state_->root;
  if (!root) throw Error(ErrorCode::io, "import: no writable cache root");
  Transfer done;
  each_image(
      state_->files, path,
      [&](const Entry& entry, const std::string& image) {
        std::vector<Bad> ignored;
        if (root->exists() && root->store().find({entry.key, entry.compiler, false}, ignored)) {
          ++done.present;
          return;
        }
        if (const int error = root->publish(entry, image); error < 0) {
          throw Error(ErrorCode::io,
                      fmt::format("import: {} cannot be written: {}", root->path(), error_text(error)));
        }
        ++done.entries;
        done.bytes += image.size();
      },
      done.bad);
  if (const std::string text = read_bundle_tuning(state_->files, path); !text.empty()) {
    configure::TuningTable shipped;
    try {
      shipped = configure::parse_tuning(text);
    } catch (const Error& error) {
      done.bad.push_back({path + ": tuning", error.what()});
    }
    if (!shipped.empty())
      change_tuning([&](configure::TuningTable& table) { done.tuned = table.add(shipped); });
  }
  return done;
}

}  // namespace mxjit::cache
