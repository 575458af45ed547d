#include "driver/device_context.hpp"

#include <fmt/format.h>

#include <array>

#include "mxjit/error.hpp"

namespace mxjit::driver {
namespace {

int attribute(const Api& api, CUdevice_attribute which, CUdevice device) {
  int value = 0;
  check(api, api.device_get_attribute(&value, which, device), "cuDeviceGetAttribute");
  return value;
}

}  // namespace

DeviceFacts device_facts(const Api& api, CUdevice device) {
  DeviceFacts facts;
  std::array<char, 256> name{};
  check(api, api.device_get_name(name.data(), static_cast<int>(name.size()), device), "cuDeviceGetName");
  facts.name = name.data();
  const int major = attribute(api, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
  const int minor = attribute(api, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
  // From 9.0 on, the instructions that the templates use need the architecture-specific target.
  facts.target = fmt::format("sm_{}{}{}", major, minor, major >= 9 ? "a" : "");
  facts.sm_count = attribute(api, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device);
  facts.shared_bytes_per_block =
      attribute(api, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, device);
  return facts;
}

DeviceContext::DeviceContext(const Api& api, CUcontext handle, CUdevice device, bool retained)
    : api_(api), handle_(handle), device_(device), retained_(retained), forks_(watch_forks()) {
  try {
    check(api, api.ctx_get_id(handle, &id_), "cuCtxGetId");
    facts_ = device_facts(api, device);
  } catch (...) {
    if (retained_) api_.primary_ctx_release(device_);
    throw;
  }
}

DeviceContext::~DeviceContext() {
  if (retained_ && !forked_since(forks_)) api_.primary_ctx_release(device_);
}

std::shared_ptr<const DeviceContext> DeviceContext::current(const Api& api, int ordinal) {
  require_own(api);
  CUcontext handle = nullptr;
  check(api, api.ctx_get_current(&handle), "cuCtxGetCurrent");
  if (handle == nullptr) return primary(api, ordinal);
  CUdevice device = 0;
  check(api, api.ctx_get_device(&device), "cuCtxGetDevice");
  return std::shared_ptr<const DeviceContext>(new DeviceContext(api, handle, device, false));
}

std::shared_ptr<const DeviceContext> DeviceContext::primary(const Api& api, int ordinal) {
  require_own(api);
  int count = 0;
  check(api, api.device_get_count(&count), "cuDeviceGetCount");
  if (ordinal < 0 || ordinal >= count)
    throw Error(ErrorCode::unavailable,
                fmt::format("device {} was asked for; the CUDA driver lists {}", ordinal, count), "device");
  CUdevice device = 0;
  check(api, api.device_get(&device, ordinal), "cuDeviceGet");
  CUcontext handle = nullptr;
  check(api, api.primary_ctx_retain(&handle, device), "cuDevicePrimaryCtxRetain");
  auto context = std::shared_ptr<const DeviceContext>(new DeviceContext(api, handle, device, true));
  check(api, api.ctx_set_current(handle), "cuCtxSetCurrent");
  return context;
}

void DeviceContext::require_alive() const {
  if (forked_since(forks_))
    throw Error(
        ErrorCode::context_lost,
        fmt::format("the CUDA context on device {} ({}) is of the process that this one was forked from, and "
                    "does not survive that: start processes before the first use of the GPU, or with exec "
                    "(\"spawn\")",
                    device_, facts_.name));
  unsigned long long id = 0;
  if (api_.ctx_get_id(handle_, &id) == CUDA_SUCCESS && id == id_) return;
  throw Error(ErrorCode::context_lost,
              fmt::format("the CUDA context on device {} ({}) was destroyed or reset", device_, facts_.name));
}

ScopedCurrent::ScopedCurrent(const DeviceContext& context) : api_(context.api()) {
  if (context.is_current()) return;
  context.require_alive();
  check(api_, api_.ctx_get_current(&before_), "cuCtxGetCurrent");
  check(api_, api_.ctx_set_current(context.handle()), "cuCtxSetCurrent");
  changed_ = true;
}

ScopedCurrent::~ScopedCurrent() {
  if (changed_) api_.ctx_set_current(before_);
}

}  // namespace mxjit::driver
