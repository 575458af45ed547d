// Structs of callers whose header is older or newer than this library.
#pragma once

#include <cstddef>
#include <cstring>
#include <string>
#include <type_traits>

#include "mxjit/error.hpp"

namespace mxjit::capi {

/// The size that `given` says it has. Throws Error(invalid_argument) naming the argument where that cannot
/// be.
template <typename Struct>
std::size_t size_given(const Struct& given, const char* argument) {
  static_assert(std::is_trivially_copyable_v<Struct> && offsetof(Struct, struct_size) == 0);
  constexpr std::size_t unit = alignof(Struct), largest = 65536;
  const std::size_t size = given.struct_size;
  if (size >= sizeof given.struct_size && size % unit == 0 && size <= largest) return size;
  throw Error(ErrorCode::invalid_argument,
              std::string(argument) + ".struct_size: expected sizeof the struct (" +
                  std::to_string(sizeof(Struct)) + " here), got " + std::to_string(size),
              std::string(argument) + ".struct_size");
}

/// `given` as this library knows it: fields past its size have the value of `defaults`. Throws
/// Error(invalid_argument) where a field that is not known here is not zero.
template <typename Struct>
Struct read_sized(const Struct& given, const Struct& defaults, const char* argument) {
  const std::size_t size = size_given(given, argument);
  const auto* const bytes = reinterpret_cast<const unsigned char*>(&given);
  for (std::size_t i = sizeof(Struct); i < size; ++i) {
    if (bytes[i] == 0) continue;
    throw Error(ErrorCode::invalid_argument,
                std::string(argument) + ": this library knows its first " + std::to_string(sizeof(Struct)) +
                    " bytes; expected zero after them, got another value at byte " + std::to_string(i),
                argument);
  }
  Struct known = defaults;
  std::memcpy(&known, &given, size < sizeof(Struct) ? size : sizeof(Struct));
  return known;
}

/// Fills `to`, which says its own size, from `from`; what lies past this library's struct becomes zero.
template <typename Struct>
void write_sized(Struct& to, const Struct& from, const char* argument) {
  const std::size_t size = size_given(to, argument);
  auto* const bytes = reinterpret_cast<unsigned char*>(&to);
  constexpr std::size_t skipped = sizeof to.struct_size;
  const std::size_t known = size < sizeof(Struct) ? size : sizeof(Struct);
  std::memcpy(bytes + skipped, reinterpret_cast<const unsigned char*>(&from) + skipped, known - skipped);
  std::memset(bytes + known, 0, size - known);
}

}  // namespace mxjit::capi
