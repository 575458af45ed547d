// One kernel in a cache: a single self-verifying unit.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/sha256.hpp"
#include "compile/nvrtc.hpp"

namespace mxjit::cache {

struct Entry {
  Digest key{};
  std::string descriptor;  // canonical JSON
  std::string target;
  std::string symbol;
  std::string build;  // version of the NVRTC that made the cubin
  compile::Resources resources;
  std::vector<std::uint8_t> cubin;
};

/// File image: magic, header length, JSON header, cubin, SHA-256 of everything before it. Deterministic.
std::string serialize(const Entry& entry);
/// Parses and verifies: digest, sizes, descriptor against key fields, ELF machine and target, symbol present.
/// Throws Error(io) with the reason; never reads past `image`.
Entry parse_entry(std::string_view image);

}  // namespace mxjit::cache
