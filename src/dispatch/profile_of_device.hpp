// The profile that stands for a device found here.
#pragma once

#include "configure/profile.hpp"
#include "driver/device_context.hpp"

namespace mxjit::dispatch {

/// By the device's name, else the default profile of its target. Throws Error(unsupported) where no kernels
/// are generated for the target.
const configure::Profile& profile_of(const driver::DeviceFacts& facts);

}  // namespace mxjit::dispatch
