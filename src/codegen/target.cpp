#include "codegen/target.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "mxjit/error.hpp"

namespace mxjit::codegen {
namespace {

constexpr std::array<std::string_view, 4> all_targets = {"sm_90a", "sm_100a", "sm_103a", "sm_120a"};

[[noreturn]] void refuse(std::string_view text) {
  throw Error(ErrorCode::invalid_argument,
              fmt::format("target: expected one of {}, got \"{}\"", fmt::join(all_targets, ", "), text),
              "target");
}

}  // namespace

Target parse_target(std::string_view text) {
  std::string_view rest = text;
  if (rest.starts_with("sm_")) rest.remove_prefix(3);
  Target target;
  const char* end = rest.data() + rest.size();
  const auto [at, error] = std::from_chars(rest.data(), end, target.number);
  if (error != std::errc() || target.number < 10 || target.number > 999) refuse(text);
  if (at != end) {
    target.suffix = *at;
    if (at + 1 != end || (target.suffix != 'a' && target.suffix != 'f')) refuse(text);
  }
  return target;
}

std::string to_string(const Target& target) {
  std::string text = fmt::format("sm_{}", target.number);
  if (target.suffix != 0) text += target.suffix;
  return text;
}

std::span<const std::string_view> targets() { return all_targets; }

std::string normalize_target(std::string_view text) {
  std::string plain(text);
  if (const auto dot = plain.find('.'); dot != std::string::npos)
    plain.erase(dot, 1);  // "9.0" is a capability
  Target target = parse_target(plain);
  if (target.suffix == 0) target.suffix = 'a';
  std::string name = to_string(target);
  if (std::find(all_targets.begin(), all_targets.end(), name) == all_targets.end()) refuse(text);
  return name;
}

}  // namespace mxjit::codegen
