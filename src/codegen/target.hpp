// Targets: the chips a cubin can be made for, by the compiler's names.
#pragma once

#include <compare>
#include <span>
#include <string>
#include <string_view>

namespace mxjit::codegen {

/// "sm_90a" is {90, 'a'}: ordered by number first, never as text.
struct Target {
  int number = 0;
  char suffix = 0;  // 'a', 'f', or none (0)
  friend auto operator<=>(const Target&, const Target&) = default;
};

/// Reads "sm_90a", "90a", "sm_90" and the like; nothing is looked up. Throws Error(invalid_argument).
Target parse_target(std::string_view text);
std::string to_string(const Target& target);

/// The targets that kernels are generated for, in ascending order.
std::span<const std::string_view> targets();
/// The target of targets() that `text` means: a missing suffix is completed ("sm_90", "90" and "9.0" mean
/// sm_90a). Throws Error(invalid_argument) that lists the targets.
std::string normalize_target(std::string_view text);

}  // namespace mxjit::codegen
