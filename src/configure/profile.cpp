#include "configure/profile.hpp"

#include <fmt/format.h>

#include <array>

#include "mxjit/error.hpp"

namespace mxjit::configure {
namespace {

constexpr int hopper_block = 227 * 1024, hopper_sm = 228 * 1024;
constexpr std::int64_t mebi = std::int64_t{1} << 20;

// The first profile of a target is its default.
constexpr std::array<Profile, 8> table = {{
    {"h200", "sm_90a", 132, hopper_block, hopper_sm, 60 * mebi},
    {"h100-sxm", "sm_90a", 132, hopper_block, hopper_sm, 50 * mebi},
    {"h100-pcie", "sm_90a", 114, hopper_block, hopper_sm, 50 * mebi},
    {"gh200", "sm_90a", 132, hopper_block, hopper_sm, 60 * mebi},
    {"h20", "sm_90a", 78, hopper_block, hopper_sm, 60 * mebi},
    {"b200", "sm_100a", 148, hopper_block, hopper_sm, 126 * mebi},
    {"b300", "sm_103a", 148, hopper_block, hopper_sm, 126 * mebi},
    {"rtx-pro-6000", "sm_120a", 188, 99 * 1024, 100 * 1024, 128 * mebi},
}};

template <typename Member>
const Profile& find(Member member, std::string_view value, std::string_view what) {
  std::string allowed;
  for (const Profile& candidate : table) {
    if (candidate.*member == value) return candidate;
    const std::string_view name = candidate.*member;
    if (allowed.find(fmt::format("\"{}\"", name)) != std::string::npos) continue;
    allowed += fmt::format("{}\"{}\"", allowed.empty() ? "" : ", ", name);
  }
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{} must be one of {}, not \"{}\"", what, allowed, value), std::string(what));
}

}  // namespace

std::span<const Profile> profiles() { return table; }

const Profile& profile(std::string_view name) { return find(&Profile::name, name, "profile"); }

const Profile& default_profile(std::string_view target) { return find(&Profile::target, target, "target"); }

}  // namespace mxjit::configure
