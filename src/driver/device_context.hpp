// One CUDA context and the facts of its device that kernels and launches depend on.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "driver/driver.hpp"
#include "driver/forks.hpp"

namespace mxjit::driver {

struct DeviceFacts {
  std::string name;    // "NVIDIA H200"
  std::string target;  // "sm_90a"
  int sm_count = 0;
  int shared_bytes_per_block = 0;  // opt-in maximum
};

/// Facts of `device`. Throws Error(driver).
DeviceFacts device_facts(const Api& api, CUdevice device);

/// A context, named by handle and by the id that is unique in a process: a reset primary context keeps its
/// handle and gets a new id.
class DeviceContext {
 public:
  /// The context current in this thread. Where none is, the primary context of device `ordinal` is retained
  /// for the life of this object and made current.
  static std::shared_ptr<const DeviceContext> current(const Api& api, int ordinal = 0);
  /// The primary context of device `ordinal`, retained and made current in this thread.
  static std::shared_ptr<const DeviceContext> primary(const Api& api, int ordinal);

  ~DeviceContext();
  DeviceContext(const DeviceContext&) = delete;
  DeviceContext& operator=(const DeviceContext&) = delete;

  const Api& api() const { return api_; }
  CUcontext handle() const { return handle_; }
  unsigned long long id() const { return id_; }
  CUdevice device() const { return device_; }
  const DeviceFacts& facts() const { return facts_; }

  /// True when this context, alive and of this process, is current in the calling thread. One driver call of
  /// some nanoseconds; none in a process forked from the context's.
  bool is_current() const {
    if (forked_since(forks_)) return false;
    unsigned long long id = 0;
    return api_.ctx_get_id(nullptr, &id) == CUDA_SUCCESS && id == id_;
  }
  /// Throws Error(context_lost) when the context was destroyed or reset, or is of the process that this one
  /// was forked from.
  void require_alive() const;

 private:
  DeviceContext(const Api& api, CUcontext handle, CUdevice device, bool retained);

  const Api& api_;
  CUcontext handle_;
  CUdevice device_;
  bool retained_;
  std::uint32_t forks_;
  unsigned long long id_ = 0;
  DeviceFacts facts_;
};

/// Makes `context` current in this thread for a scope, then restores what was. Throws Error(context_lost)
/// when it was destroyed or reset.
class ScopedCurrent {
 public:
  explicit ScopedCurrent(const DeviceContext& context);
  ~ScopedCurrent();
  ScopedCurrent(const ScopedCurrent&) = delete;
  ScopedCurrent& operator=(const ScopedCurrent&) = delete;

 private:
  const Api& api_;
  CUcontext before_ = nullptr;
  bool changed_ = false;
};

}  // namespace mxjit::driver
