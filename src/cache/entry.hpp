// One kernel in a cache: a single self-verifying unit.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/sha256.hpp"
#include "compile/compiler.hpp"

namespace mxjit::cache {

inline constexpr int entry_format = 1;

struct Entry {
  Digest key{};
  std::string descriptor;  // canonical JSON
  std::string target;
  std::string symbol;
  std::string build;     // version of the compiler that made the cubin, "13.0.88"
  std::string compiler;  // identity of its binary
  Digest templates{};    // digest of the templates it was made from
  compile::Resources resources;
  std::vector<std::uint8_t> cubin;
};

/// The entry of a kernel just compiled.
Entry make_entry(const codegen::KernelDescriptor& descriptor, const compile::Compiled& compiled);

/// File image: magic, lengths, JSON header, cubin, SHA-256 of everything before it. Deterministic.
std::string serialize(const Entry& entry);
/// Parses and verifies: magic, lengths, digest, header fields, descriptor against target and symbol, the
/// ELF's machine, chip and symbol, and the key where the entry's templates are this library's. Throws
/// Error(io) with the reason; never reads past `image`.
Entry parse_entry(std::string_view image);
/// parse_entry, and that the entry is the one of `key` made from this library's templates.
Entry parse_entry(std::string_view image, const Digest& key);

/// The header alone, without digest and cubin checks: for lists and for the nearest entry. `head` may be cut
/// anywhere after the header.
Entry parse_entry_header(std::string_view head);
/// Bytes of magic, lengths and header of an image that starts with `head` (at least 24 bytes). Throws
/// Error(io).
std::size_t header_end(std::string_view head);

/// Orders versions such as "13.0.88" by their numbers; what is no number counts as 0.
bool is_older(std::string_view build, std::string_view other);

}  // namespace mxjit::cache
