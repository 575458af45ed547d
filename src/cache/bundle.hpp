// A bundle: a read-only set of entries in one file, to ship. Made of the same entries it has the same bytes,
// whoever makes it and wherever.
//     magic, length of the manifest, manifest (JSON), SHA-256 of all before, then the entries' images
// The manifest lists the entries by key and build with their descriptors, where their images lie, and the
// SHA-256 of each; it holds the tuning table, as text, where there is one.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cache/layer.hpp"

namespace mxjit::cache {

/// The bundle's image. `images` are entries' images in any order; repeated ones are taken once. `tuning`: a
/// tuning table's text; empty: none. Throws Error(io) for an image that does not verify.
std::string make_bundle(const std::vector<std::string>& images, const std::string& tuning = {});

/// What the manifest says of one entry.
struct Manifested {
  std::string key, build, compiler, templates, target, descriptor, sha256;
  std::uint64_t offset = 0, bytes = 0;  // offset in the file
};

/// The text of the tuning table of the bundle at `path`; empty where it has none. Throws Error(io) as
/// read_manifest.
std::string read_bundle_tuning(FileSystem& files, const std::string& path);

/// Reads the manifest of the bundle at `path`. Throws Error(io) with the reason.
std::vector<Manifested> read_manifest(FileSystem& files, const std::string& path);

/// Calls `visit` with the verified image of each entry of the bundle. An entry that is refused (wrong digest,
/// missing payload, made from other templates than this library's, a cubin for another chip than it says)
/// goes to `bad` with the reason, and the others are still visited. Throws Error(io) when the file is no
/// bundle.
void each_image(FileSystem& files, const std::string& path,
                const std::function<void(const Entry&, const std::string& image)>& visit,
                std::vector<Bad>& bad);

}  // namespace mxjit::cache
