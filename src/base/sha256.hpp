// SHA-256 (libcrypto) over length-prefixed parts, so that no two sequences of parts share a digest.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace mxjit {

using Digest = std::array<std::uint8_t, 32>;

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  /// Appends raw bytes.
  void update(std::string_view bytes);
  /// Appends the length as 8 little-endian bytes, then the bytes.
  void part(std::string_view bytes);
  Digest finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

Digest sha256(std::string_view bytes);
std::string to_hex(const Digest& digest);
/// Reads 64 lower-case hexadecimal digits; false, and `digest` untouched, for anything else.
bool from_hex(std::string_view hex, Digest& digest);

}  // namespace mxjit
