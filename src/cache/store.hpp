// A directory of entries: names, verified reading, visiting. The root and read-only directories share it.
//     ab/<key>-<compiler>.kernel   one entry; ab: the key's first two digits, compiler: 16 digits of the
//     digest
//                                  of its identity
//     tuning.json                  the tuning table
//     tmp/                         temporaries of publishing
//     quarantine/                  what failed verification
//     lock                         holds no data; a key's advisory lock is one byte of it
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cache/layer.hpp"

namespace mxjit::cache {

inline constexpr std::uint64_t entry_bytes_limit = 256U << 20;
inline constexpr std::uint64_t tuning_bytes_limit = 64U << 20;

class Store {
 public:
  /// `touch`: an entry that is found has its time set to now where that is older than a day, so that
  /// collection knows what is in use.
  Store(FileSystem& files, std::string path, bool touch)
      : files_(files), path_(std::move(path)), touch_(touch) {}

  const std::string& path() const { return path_; }
  std::string folder_of(const Digest& key) const;
  std::string path_of(const Digest& key, const std::string& compiler) const;

  /// See Layer::find.
  std::optional<Entry> find(const Wanted& wanted, std::vector<Bad>& bad) const;
  /// See Layer::each.
  void each(bool whole, const std::function<void(const Entry&, std::uint64_t bytes)>& visit,
            std::vector<Bad>& bad) const;
  /// The text of the tuning table, or nothing. See Layer::tuning.
  std::optional<std::string> tuning(std::vector<Bad>& bad) const;
  std::string tuning_path() const { return path_ + "/tuning.json"; }
  /// Paths of every file that has an entry's name.
  std::vector<std::string> files() const;

 private:
  std::optional<Entry> read(const std::string& path, const Digest& key, std::vector<Bad>& bad) const;
  std::optional<Entry> newest(const Wanted& wanted, std::vector<Bad>& bad) const;

  FileSystem& files_;
  std::string path_;
  bool touch_;
};

}  // namespace mxjit::cache
