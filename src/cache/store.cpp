#include "cache/store.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <ctime>

#include "mxjit/error.hpp"

namespace mxjit::cache {
namespace {

constexpr std::string_view suffix = ".kernel";
constexpr std::int64_t day_seconds = 86400;
constexpr std::size_t key_digits = 64, tag_digits = 16;
constexpr std::size_t name_length = key_digits + 1 + tag_digits + suffix.size();

bool is_hex(std::string_view text) {
  return text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

bool is_entry_name(std::string_view name) {
  return name.size() == name_length && name.ends_with(suffix) && name[key_digits] == '-' &&
         is_hex(name.substr(0, key_digits)) && is_hex(name.substr(key_digits + 1, tag_digits));
}

// Network file systems forget a file's handle when another host replaces it: asking again finds the new one.
int read_again(FileSystem& files, const std::string& path, std::string& image,
               std::int64_t* modified = nullptr, std::uint64_t limit = entry_bytes_limit) {
  const int error = read_file(files, path, image, limit, modified);
  return error == -ESTALE ? read_file(files, path, image, limit, modified) : error;
}

// Enough for magic, lengths and any header, without the cubin.
int read_head(FileSystem& files, const std::string& path, std::string& head, std::uint64_t& size) {
  const OpenFile file(files, path, O_RDONLY | O_NONBLOCK);
  if (!file.ok()) return file.error();
  struct stat status {};
  if (const int error = files.status(file.fd(), status); error < 0) return error;
  if (!S_ISREG(status.st_mode)) return -EBADMSG;
  size = static_cast<std::uint64_t>(status.st_size);
  head.resize(std::min<std::uint64_t>(size, 16384));
  for (int attempt = 0; attempt < 2; ++attempt) {
    const ssize_t got = files.read(file.fd(), head.data(), head.size(), 0);
    if (got < 0) return static_cast<int>(got);
    head.resize(static_cast<std::size_t>(got));
    std::size_t end = 0;
    try {
      end = header_end(head);
    } catch (const Error&) {
      return 0;  // told by whoever parses it
    }
    if (end <= head.size() || end > size) return 0;
    head.resize(end);  // an unusually long header: once more
  }
  return 0;
}

}  // namespace

std::string Store::folder_of(const Digest& key) const { return path_ + "/" + to_hex(key).substr(0, 2); }

std::string Store::path_of(const Digest& key, const std::string& compiler) const {
  std::string path =
      folder_of(key) + "/" + to_hex(key) + "-" + to_hex(sha256(compiler)).substr(0, tag_digits);
  return path += suffix;
}

std::optional<Entry> Store::read(const std::string& path, const Digest& key, std::vector<Bad>& bad) const {
  std::string image;
  std::int64_t modified = 0;
  if (const int error = read_again(files_, path, image, &modified); error < 0) {
    const bool not_an_entry = error == -EBADMSG || error == -EFBIG || error == -ELOOP;
    if (error != -ENOENT && error != -ENOTDIR)
      bad.push_back({path, error == -EBADMSG ? "no regular file" : error_text(error), not_an_entry});
    return std::nullopt;
  }
  try {
    Entry entry = parse_entry(image, key);
    if (touch_ && std::time(nullptr) - modified > day_seconds) files_.touch(path);
    return entry;
  } catch (const Error& error) {
    bad.push_back({path, error.what()});
    return std::nullopt;
  }
}

std::optional<Entry> Store::find(const Wanted& wanted, std::vector<Bad>& bad) const {
  if (!wanted.compiler.empty()) {
    if (auto entry = read(path_of(wanted.key, wanted.compiler), wanted.key, bad)) return entry;
  }
  return wanted.any_build ? newest(wanted, bad) : std::nullopt;
}

std::optional<Entry> Store::newest(const Wanted& wanted, std::vector<Bad>& bad) const {
  const std::string folder = folder_of(wanted.key);
  std::vector<std::string> names;
  if (files_.list(folder, names) < 0) return std::nullopt;
  std::sort(names.begin(), names.end());  // equal builds of two compilers: always the same one
  const std::string own = wanted.compiler.empty() ? "" : path_of(wanted.key, wanted.compiler);
  std::optional<Entry> best;
  for (const std::string& name : names) {
    const std::string path = folder + "/" + name;
    if (!is_entry_name(name) || !name.starts_with(to_hex(wanted.key)) || path == own) continue;
    auto entry = read(path, wanted.key, bad);
    if (entry && (!best || is_older(best->build, entry->build))) best = std::move(entry);
  }
  return best;
}

std::optional<std::string> Store::tuning(std::vector<Bad>& bad) const {
  std::string text;
  const int error = read_again(files_, tuning_path(), text, nullptr, tuning_bytes_limit);
  if (error == 0) return text;
  if (error != -ENOENT && error != -ENOTDIR)
    bad.push_back({tuning_path(), error_text(error), error == -EBADMSG || error == -EFBIG});
  return std::nullopt;
}

std::vector<std::string> Store::files() const {
  std::vector<std::string> folders, paths;
  files_.list(path_, folders);
  std::sort(folders.begin(), folders.end());
  for (const std::string& folder : folders) {
    if (folder.size() != 2 || !is_hex(folder)) continue;
    std::vector<std::string> names;
    files_.list(path_ + "/" + folder, names);
    std::sort(names.begin(), names.end());
    for (const std::string& name : names) {
      if (is_entry_name(name)) paths.push_back(path_ + "/" + folder + "/" + name);
    }
  }
  return paths;
}

void Store::each(bool whole, const std::function<void(const Entry&, std::uint64_t bytes)>& visit,
                 std::vector<Bad>& bad) const {
  for (const std::string& path : files()) {
    std::string image;
    std::uint64_t size = 0;
    const int error = whole ? read_again(files_, path, image) : read_head(files_, path, image, size);
    if (error < 0) {
      if (error != -ENOENT) bad.push_back({path, error_text(error)});  // gone since the listing: no harm
      continue;
    }
    try {
      const Entry entry = whole ? parse_entry(image) : parse_entry_header(image);
      if (path_of(entry.key, entry.compiler) != path) {
        throw Error(ErrorCode::io, "entry: holds another key or build than its name says");
      }
      visit(entry, whole ? image.size() : size);
    } catch (const Error& refusal) {
      if (refusal.code() != ErrorCode::io) throw;
      bad.push_back({path, refusal.what()});
    }
  }
}

namespace {

class DirectoryLayer final : public Layer {
 public:
  DirectoryLayer(FileSystem& files, std::string path) : store_(files, std::move(path), false) {}
  const std::string& name() const override { return store_.path(); }
  std::optional<Entry> find(const Wanted& wanted, std::vector<Bad>& bad) override {
    return store_.find(wanted, bad);
  }
  void each(bool whole, const std::function<void(const Entry&, std::uint64_t)>& visit,
            std::vector<Bad>& bad) override {
    store_.each(whole, visit, bad);
  }
  std::optional<std::string> tuning(std::vector<Bad>& bad) override { return store_.tuning(bad); }

 private:
  Store store_;
};

}  // namespace

std::unique_ptr<Layer> directory_layer(FileSystem& files, const std::string& path) {
  return std::make_unique<DirectoryLayer>(files, path);
}

std::unique_ptr<Layer> open_layer(FileSystem& files, const std::string& path) {
  const OpenFile directory(files, path, O_RDONLY | O_DIRECTORY);
  return directory.ok() ? directory_layer(files, path) : bundle_layer(files, path);
}

}  // namespace mxjit::cache
