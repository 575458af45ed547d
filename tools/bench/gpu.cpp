#include "bench/gpu.hpp"

#include <fmt/format.h>

#include "bench/device_source.hpp"
#include "mxjit/error.hpp"

namespace mxjit::bench {
namespace {

const driver::Api& api_for(const char* suite) {
  const std::string why_not = driver::why_no_gpu();
  if (!why_not.empty())
    throw Error(ErrorCode::unavailable, fmt::format("bench {} needs a GPU: {}", suite, why_not));
  return driver::api();
}

}  // namespace

Gpu::Gpu(const char* suite)
    : api(api_for(suite)),
      device(driver::DeviceContext::current(api)),
      current(*device),
      program(api, device_source, device->facts().target),
      clocks(device->device()) {}

}  // namespace mxjit::bench
