// What the device tests run on: the machine's GPU, or, in the emulation's program, an emulated one.
#pragma once

#include <memory>
#include <string>

#include "cache/cache.hpp"
#include "driver/driver.hpp"

namespace mxjit::device {

/// Why there is nothing to run on, or an empty string.
std::string why_no_device();
const driver::Api& backend_api();
std::shared_ptr<cache::Cache> backend_cache();
/// True where full sizes would take too long.
bool backend_is_slow();

}  // namespace mxjit::device
