#include "cache/bundle.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <tuple>

#include "cache/store.hpp"
#include "mxjit/error.hpp"

namespace mxjit::cache {
namespace {

using Json = nlohmann::json;

constexpr std::string_view bundle_magic = "MXJITB1\n";
constexpr std::size_t bundle_head_bytes = 16;
constexpr std::uint64_t manifest_limit = 256U << 20;
constexpr int bundle_format = 1;

[[noreturn]] void refuse(const std::string& path, std::string_view reason) {
  throw Error(ErrorCode::io, fmt::format("bundle {}: {}", path, reason));
}

std::uint64_t read_length(std::string_view bytes) {
  std::uint64_t length = 0;
  for (int i = 7; i >= 0; --i) length = length << 8 | static_cast<unsigned char>(bytes[i]);
  return length;
}

// Reads exactly `size` bytes; false when the file ends before.
bool read_exactly(FileSystem& files, int fd, std::string& bytes, std::uint64_t size, std::uint64_t offset) {
  bytes.resize(size);
  for (std::size_t at = 0; at < size;) {
    const ssize_t got = files.read(fd, bytes.data() + at, size - at, offset + at);
    if (got <= 0) return false;
    at += static_cast<std::size_t>(got);
  }
  return true;
}

std::string text_of(const Json& item, const char* name) {
  const auto found = item.find(name);
  if (found == item.end() || !found->is_string() || found->get_ref<const std::string&>().empty()) {
    throw Error(ErrorCode::io, fmt::format("manifest: \"{}\" is missing, empty or no string", name));
  }
  return found->get<std::string>();
}

std::uint64_t count(const Json& item, const char* name) {
  const auto found = item.find(name);
  if (found == item.end() || !found->is_number_unsigned()) {
    throw Error(ErrorCode::io, fmt::format("manifest: \"{}\" is missing or no count", name));
  }
  return found->get<std::uint64_t>();
}

Manifested read_item(const Json& item, std::uint64_t payload) {
  Manifested entry;
  entry.key = text_of(item, "key");
  entry.build = text_of(item, "build");
  entry.compiler = text_of(item, "compiler");
  entry.templates = text_of(item, "templates");
  entry.target = text_of(item, "target");
  entry.sha256 = text_of(item, "sha256");
  const auto descriptor = item.find("descriptor");
  if (descriptor == item.end() || !descriptor->is_object()) {
    throw Error(ErrorCode::io, "manifest: \"descriptor\" is missing or no object");
  }
  entry.descriptor = descriptor->dump();
  entry.offset = payload + count(item, "offset");
  entry.bytes = count(item, "bytes");
  Digest digest{};
  if (!from_hex(entry.sha256, digest) || !from_hex(entry.key, digest) || !from_hex(entry.templates, digest)) {
    throw Error(ErrorCode::io, "manifest: a field that holds no SHA-256");
  }
  return entry;
}

// The open file and its manifest.
struct Opened {
  Opened(FileSystem& files, const std::string& path) : file(files, path, O_RDONLY | O_NONBLOCK) {
    if (!file.ok()) refuse(path, error_text(file.error()));
    struct stat status {};
    if (files.status(file.fd(), status) < 0 || !S_ISREG(status.st_mode)) refuse(path, "no regular file");
    std::string head, manifest, digest;
    if (!read_exactly(files, file.fd(), head, bundle_head_bytes, 0) || !head.starts_with(bundle_magic)) {
      refuse(path, "no bundle of this format");
    }
    const std::uint64_t length = read_length(std::string_view(head).substr(bundle_magic.size()));
    if (length > manifest_limit || length > static_cast<std::uint64_t>(status.st_size) ||
        !read_exactly(files, file.fd(), manifest, length, bundle_head_bytes) ||
        !read_exactly(files, file.fd(), digest, sizeof(Digest), bundle_head_bytes + length)) {
      refuse(path, "cut short in its manifest");
    }
    const Digest expected = sha256(head + manifest);
    if (!std::equal(expected.begin(), expected.end(), digest.begin(),
                    [](std::uint8_t a, char b) { return a == static_cast<std::uint8_t>(b); })) {
      refuse(path, "SHA-256 of its manifest does not match");
    }
    try {
      const auto shallow = [&](int depth, Json::parse_event_t, Json&) {
        if (depth > 6) refuse(path, "manifest nested too deeply");
        return true;
      };
      parse(path, Json::parse(manifest, shallow), bundle_head_bytes + length + sizeof(Digest));
    } catch (const Json::exception& error) {
      refuse(path, error.what());
    }
  }

  OpenFile file;
  std::vector<Manifested> entries;
  std::string tuning;    // empty: none
  std::vector<Bad> bad;  // items of the manifest that are refused

 private:
  void parse(const std::string& path, const Json& manifest, std::uint64_t payload) {
    if (!manifest.is_object() || manifest.value("format", 0) != bundle_format ||
        !manifest.contains("entries") || !manifest["entries"].is_array()) {
      refuse(path, "manifest of another format");
    }
    tuning = manifest.value("tuning", std::string());
    for (const Json& item : manifest["entries"]) {
      try {
        entries.push_back(read_item(item, payload));
      } catch (const Error& error) {
        bad.push_back(
            {fmt::format("{}:{}", path, item.is_object() ? item.value("key", "") : ""), error.what()});
      }
    }
  }
};

// The image of one entry, verified against the manifest and by itself.
std::string read_image(FileSystem& files, int fd, const Manifested& item) {
  std::string image;
  if (item.bytes > entry_bytes_limit || !read_exactly(files, fd, image, item.bytes, item.offset)) {
    throw Error(ErrorCode::io, "payload is missing or cut short");
  }
  if (to_hex(sha256(image)) != item.sha256) throw Error(ErrorCode::io, "SHA-256 does not match the manifest");
  return image;
}

Entry checked(std::string_view image, const Manifested& item) {
  Digest key{};
  from_hex(item.key, key);
  Entry entry = parse_entry(image, key);
  if (entry.build != item.build || entry.compiler != item.compiler || entry.descriptor != item.descriptor ||
      entry.target != item.target) {
    throw Error(ErrorCode::io, "entry differs from the manifest");
  }
  return entry;
}

class BundleLayer final : public Layer {
 public:
  BundleLayer(FileSystem& files, std::string path) : files_(files), path_(std::move(path)) {}

  const std::string& name() const override { return path_; }

  std::optional<Entry> find(const Wanted& wanted, std::vector<Bad>& bad) override {
    const Opened* bundle = open(bad);
    if (bundle == nullptr) return std::nullopt;
    const auto [first, last] = index_.equal_range(to_hex(wanted.key));
    std::vector<const Manifested*> order;
    for (auto item = first; item != last; ++item) {
      if (wanted.any_build || item->second->compiler == wanted.compiler) order.push_back(item->second);
    }
    // This compiler's own build first, then from the newest to the oldest.
    std::stable_sort(order.begin(), order.end(), [&](const Manifested* a, const Manifested* b) {
      const bool own_a = a->compiler == wanted.compiler, own_b = b->compiler == wanted.compiler;
      return own_a != own_b ? own_a : is_older(b->build, a->build);
    });
    for (const Manifested* item : order) {
      try {
        return checked(read_image(files_, bundle->file.fd(), *item), *item);
      } catch (const Error& error) {
        bad.push_back({path_ + ":" + item->key, error.what()});
      }
    }
    return std::nullopt;
  }

  void each(bool whole, const std::function<void(const Entry&, std::uint64_t)>& visit,
            std::vector<Bad>& bad) override {
    const Opened* bundle = open(bad);
    if (bundle == nullptr) return;
    bad.insert(bad.end(), bundle->bad.begin(), bundle->bad.end());
    for (const Manifested& item : bundle->entries) {
      try {
        const std::string image = read_image(files_, bundle->file.fd(), item);
        visit(whole ? parse_entry(image) : parse_entry_header(image), image.size());
      } catch (const Error& error) {
        if (error.code() != ErrorCode::io) throw;
        bad.push_back({path_ + ":" + item.key, error.what()});
      }
    }
  }

  std::optional<std::string> tuning(std::vector<Bad>& bad) override {
    const Opened* bundle = open(bad);
    if (bundle == nullptr || bundle->tuning.empty()) return std::nullopt;
    return bundle->tuning;
  }

 private:
  // The bundle, opened by the first call; held from then on, so that replacing the file harms nobody.
  const Opened* open(std::vector<Bad>& bad) {
    const std::scoped_lock lock(mutex_);
    if (opened_) return opened_.get();
    try {
      auto opened = std::make_unique<Opened>(files_, path_);
      for (const Manifested& item : opened->entries) index_.emplace(item.key, &item);
      opened_ = std::move(opened);
    } catch (const Error& error) {
      bad.push_back({path_, error.what()});
    }
    return opened_.get();
  }

  FileSystem& files_;
  std::string path_;
  std::mutex mutex_;
  std::unique_ptr<Opened> opened_;
  std::multimap<std::string, const Manifested*> index_;  // unchanged once opened
};

}  // namespace

std::string make_bundle(const std::vector<std::string>& images, const std::string& tuning) {
  std::map<std::tuple<std::string, std::string, std::string>, std::pair<Entry, const std::string*>> sorted;
  for (const std::string& image : images) {
    Entry entry = parse_entry(image);
    std::tuple name(to_hex(entry.key), entry.build, entry.compiler);
    entry.cubin.clear();
    sorted.try_emplace(std::move(name), std::move(entry), &image);
  }
  Json entries = Json::array();
  std::string payload;
  for (const auto& [name, item] : sorted) {
    const auto& [entry, image] = item;
    entries.push_back({{"key", to_hex(entry.key)},
                       {"build", entry.build},
                       {"compiler", entry.compiler},
                       {"templates", to_hex(entry.templates)},
                       {"target", entry.target},
                       {"descriptor", Json::parse(entry.descriptor)},
                       {"offset", payload.size()},
                       {"bytes", image->size()},
                       {"sha256", to_hex(sha256(*image))}});
    payload += *image;
  }
  Json document{{"format", bundle_format}, {"entries", std::move(entries)}};
  if (!tuning.empty()) document["tuning"] = tuning;
  const std::string manifest = document.dump();
  std::string bundle(bundle_magic);
  for (int shift = 0; shift < 64; shift += 8) {
    bundle += static_cast<char>(static_cast<std::uint64_t>(manifest.size()) >> shift);
  }
  bundle += manifest;
  const Digest digest = sha256(bundle);
  bundle.append(reinterpret_cast<const char*>(digest.data()), digest.size());
  return bundle + payload;
}

std::string read_bundle_tuning(FileSystem& files, const std::string& path) {
  return Opened(files, path).tuning;
}

std::vector<Manifested> read_manifest(FileSystem& files, const std::string& path) {
  return Opened(files, path).entries;
}

void each_image(FileSystem& files, const std::string& path,
                const std::function<void(const Entry&, const std::string& image)>& visit,
                std::vector<Bad>& bad) {
  const Opened bundle(files, path);
  bad.insert(bad.end(), bundle.bad.begin(), bundle.bad.end());
  for (const Manifested& item : bundle.entries) {
    std::string image;
    std::optional<Entry> entry;
    try {
      image = read_image(files, bundle.file.fd(), item);
      entry = checked(image, item);
    } catch (const Error& error) {
      bad.push_back({path + ":" + item.key, error.what()});
      continue;
    }
    visit(*entry, image);
  }
}

std::unique_ptr<Layer> bundle_layer(FileSystem& files, const std::string& path) {
  return std::make_unique<BundleLayer>(files, path);
}

}  // namespace mxjit::cache
