// The writable root: safe before it is used, made when first written, published to entry by entry.
#pragma once

#include <atomic>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "cache/store.hpp"

namespace mxjit::cache {

class Root {
 public:
  Root(FileSystem& files, std::string path, bool trust);

  const std::string& path() const { return store_.path(); }
  const Store& store() const { return store_; }
  std::string lock_path() const { return path() + "/lock"; }

  /// Whether there is a directory to look in. Throws Error(invalid_argument) when it is not safe: a symlink,
  /// of another owner, or world-writable, unless trusted.
  bool exists();
  /// Makes what is missing, the root itself with mode 0700. Returns 0 or -errno; throws as exists().
  int make();
  /// Publishes an entry's image. Returns 0 or -errno; throws as exists().
  int publish(const Entry& entry);
  int publish(const Entry& entry, std::string_view image);
  /// Likewise the text of a tuning table, in place of the one that is there.
  int publish_tuning(std::string_view text);
  /// Moves a bad entry to quarantine/, or removes it. Another process may have replaced it meanwhile: then a
  /// sound entry is built once more, no harm else. False when it could not be moved.
  bool set_aside(const std::string& bad);

 private:
  int put(const std::string& folder, const std::string& target, std::string_view bytes);

  FileSystem& files_;
  Store store_;
  bool trust_;
  std::atomic<bool> safe_{false};
  std::atomic<bool> swept_{false};
};

}  // namespace mxjit::cache
