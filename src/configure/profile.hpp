// Device facts a configuration may depend on, by name, so that a machine without a GPU prewarms for any of
// them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace mxjit::configure {

struct Profile {
  std::string_view name;    // "h200", "h100-sxm", ...
  std::string_view target;  // "sm_90a"
  int sm_count;
  int shared_bytes_per_block;  // opt-in maximum
  int shared_bytes_per_sm;
  std::int64_t l2_bytes;
};

/// Every known profile.
std::span<const Profile> profiles();
/// The profile named `name`; throws Error(invalid_argument) listing the names.
const Profile& profile(std::string_view name);
/// The profile that stands for `target` when none is named (sm_90a: h200). Throws Error(invalid_argument)
/// listing the targets.
const Profile& default_profile(std::string_view target);

}  // namespace mxjit::configure
