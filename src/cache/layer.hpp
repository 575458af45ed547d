// One place in the search order: a directory of entries, or a bundle.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/file_system.hpp"
#include "cache/entry.hpp"

namespace mxjit::cache {

/// Which build of an entry will do.
struct Wanted {
  Digest key{};
  std::string compiler;   // identity of the compiler here; empty when there is none or it may not be used
  bool any_build = true;  // false: only an entry of that compiler
};

/// Something in a layer that is no entry, and why.
struct Bad {
  std::string path;  // of the file, or "BUNDLE:KEY"
  std::string reason;
  bool damaged = true;  // false: it could not be read now, and may be sound
};

class Layer {
 public:
  virtual ~Layer() = default;
  /// The path that it was named by.
  virtual const std::string& name() const = 0;
  /// The verified entry wanted, of this compiler's build if there is one, else of the newest; what was found
  /// unfit on the way is added to `bad`. Never throws for what it finds on the disk.
  virtual std::optional<Entry> find(const Wanted& wanted, std::vector<Bad>& bad) = 0;
  /// Calls `visit` for each entry with its image's size; `whole`: verified with its cubin, else the header
  /// alone.
  virtual void each(bool whole, const std::function<void(const Entry&, std::uint64_t bytes)>& visit,
                    std::vector<Bad>& bad) = 0;
  /// The text of its tuning table, unread, or nothing.
  virtual std::optional<std::string> tuning(std::vector<Bad>& bad) = 0;
};

/// A directory of entries laid out as a root is, read only. One that does not exist is empty.
std::unique_ptr<Layer> directory_layer(FileSystem& files, const std::string& path);
/// A bundle file. One that cannot be used is empty, and says why in `bad` each time.
std::unique_ptr<Layer> bundle_layer(FileSystem& files, const std::string& path);
/// Either, by what `path` is now.
std::unique_ptr<Layer> open_layer(FileSystem& files, const std::string& path);

}  // namespace mxjit::cache
