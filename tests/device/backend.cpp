#include "device/backend.hpp"

namespace mxjit::device {

std::string why_no_device() { return driver::why_no_gpu(); }
const driver::Api& backend_api() { return driver::api(); }
std::shared_ptr<cache::Cache> backend_cache() {
  return std::make_shared<cache::Cache>(cache::Options::from_environment());
}
bool backend_is_slow() { return false; }

}  // namespace mxjit::device
