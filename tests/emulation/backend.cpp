#include "device/backend.hpp"

#include "emulation/driver.hpp"
#include "emulation/host_compiler.hpp"

namespace mxjit::device {

std::string why_no_device() { return {}; }
const driver::Api& backend_api() { return emulation::api(); }

// What one test compiles the next ones find.
std::shared_ptr<cache::Cache> backend_cache() {
  cache::Options options;
  options.root = MXJIT_EMULATION_CACHE;
  return std::make_shared<cache::Cache>(
      options, cache::Seams{.compiler = std::make_shared<emulation::HostCompiler>()});
}
bool backend_is_slow() { return true; }

}  // namespace mxjit::device
