#include "dispatch/profile_of_device.hpp"

#include <fmt/format.h>

#include <array>
#include <string_view>

#include "mxjit/error.hpp"

namespace mxjit::dispatch {

const configure::Profile& profile_of(const driver::DeviceFacts& facts) {
  struct Named {
    std::string_view part;  // of the device's name
    std::string_view profile;
  };
  // A longer name goes before one that is part of it.
  static constexpr std::array<Named, 5> known = {{{"GH200", "gh200"},
                                                  {"H200", "h200"},
                                                  {"H100 PCIe", "h100-pcie"},
                                                  {"H100", "h100-sxm"},
                                                  {"H20", "h20"}}};
  for (const Named& named : known)
    if (facts.name.find(named.part) != std::string::npos)
      for (const configure::Profile& profile : configure::profiles())
        if (profile.name == named.profile && profile.target == facts.target) return profile;
  try {
    return configure::default_profile(facts.target);
  } catch (const Error& error) {
    throw Error(ErrorCode::unsupported,
                fmt::format("{} is of target {}: {}", facts.name, facts.target, error.what()), "device");
  }
}

}  // namespace mxjit::dispatch
