// Owning handles of device memory, streams and events, for the program, the benchmarks and the tests: the
// library itself never allocates on the device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "driver/driver.hpp"

namespace mxjit::driver {

/// An owned handle; `Destroy` is called with it once.
template <typename Handle, auto Destroy>
class Owned {
 public:
  Owned() = default;
  Owned(const Api& api, Handle handle) : api_(&api), handle_(handle) {}
  Owned(Owned&& other) noexcept : api_(other.api_), handle_(std::exchange(other.handle_, Handle{})) {}
  Owned& operator=(Owned&& other) noexcept {
    std::swap(api_, other.api_);
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Owned() {
    if (handle_ != Handle{}) (api_->*Destroy)(handle_);
  }
  Handle get() const { return handle_; }

 private:
  const Api* api_ = nullptr;
  Handle handle_{};
};

using OwnedStream = Owned<CUstream, &Api::stream_destroy>;
using OwnedEvent = Owned<CUevent, &Api::event_destroy>;
using OwnedGraph = Owned<CUgraph, &Api::graph_destroy>;
using OwnedGraphExec = Owned<CUgraphExec, &Api::graph_exec_destroy>;
using OwnedMemory = Owned<CUdeviceptr, &Api::mem_free>;

/// A stream that does not wait for the legacy default stream.
OwnedStream make_stream(const Api& api);
OwnedEvent make_event(const Api& api);
/// Ends the capture of `stream` and makes its graph ready to launch.
OwnedGraphExec end_capture(const Api& api, CUstream stream);

/// Device memory of the current context. Zero bytes are legal and hold no memory.
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  DeviceBuffer(const Api& api, std::size_t bytes);

  CUdeviceptr address() const { return memory_.get(); }
  void* data() const { return reinterpret_cast<void*>(memory_.get()); }
  std::size_t bytes() const { return bytes_; }

  void fill(std::uint8_t value, CUstream stream);
  /// Copies `bytes` from or to host memory, which must stay valid until `stream` is synchronized.
  void write(const void* host, std::size_t bytes, CUstream stream, std::size_t offset = 0);
  void read(void* host, std::size_t bytes, CUstream stream, std::size_t offset = 0) const;

 private:
  const Api* api_ = nullptr;
  OwnedMemory memory_;
  std::size_t bytes_ = 0;
};

}  // namespace mxjit::driver
