// The plain functions of libcrypto, not its EVP interface: that one's state is gone once exit() has begun,
// while other threads may still compile.
#define OPENSSL_SUPPRESS_DEPRECATED
#include "base/sha256.hpp"

#include <openssl/sha.h>

#include "mxjit/error.hpp"

namespace mxjit {
namespace {

void require(int ok) {
  if (ok != 1) throw Error(ErrorCode::internal, "libcrypto: SHA-256 failed");
}

}  // namespace

struct Sha256::State {
  SHA256_CTX context;
};

Sha256::Sha256() : state_(std::make_unique<State>()) { require(SHA256_Init(&state_->context)); }

Sha256::~Sha256() = default;

void Sha256::update(std::string_view bytes) {
  require(SHA256_Update(&state_->context, bytes.data(), bytes.size()));
}

void Sha256::part(std::string_view bytes) {
  std::array<char, 8> length{};
  for (std::size_t i = 0; i < length.size(); ++i) length[i] = static_cast<char>(bytes.size() >> (8 * i));
  update({length.data(), length.size()});
  update(bytes);
}

Digest Sha256::finish() {
  Digest digest{};
  require(SHA256_Final(digest.data(), &state_->context));
  return digest;
}

Digest sha256(std::string_view bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.finish();
}

std::string to_hex(const Digest& digest) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string hex;
  for (const std::uint8_t byte : digest) {
    hex += digits[byte >> 4];
    hex += digits[byte & 15];
  }
  return hex;
}

bool from_hex(std::string_view hex, Digest& digest) {
  Digest value{};
  if (hex.size() != 2 * value.size()) return false;
  for (std::size_t i = 0; i < hex.size(); ++i) {
    const char c = hex[i];
    const bool letter = c >= 'a' && c <= 'f';
    if (!letter && (c < '0' || c > '9')) return false;
    const int nibble = letter ? c - 'a' + 10 : c - '0';
    value[i / 2] = static_cast<std::uint8_t>(value[i / 2] << 4 | nibble);
  }
  digest = value;
  return true;
}

}  // namespace mxjit
