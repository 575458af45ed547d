#include "driver/device_buffer.hpp"

#include <fmt/format.h>

#include "mxjit/error.hpp"

namespace mxjit::driver {

OwnedStream make_stream(const Api& api) {
  CUstream stream = nullptr;
  check(api, api.stream_create(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  return {api, stream};
}

OwnedEvent make_event(const Api& api) {
  CUevent event = nullptr;
  check(api, api.event_create(&event, CU_EVENT_DEFAULT), "cuEventCreate");
  return {api, event};
}

OwnedGraphExec end_capture(const Api& api, CUstream stream) {
  CUgraph graph = nullptr;
  check(api, api.stream_end_capture(stream, &graph), "cuStreamEndCapture");
  const OwnedGraph owned(api, graph);
  CUgraphExec exec = nullptr;
  check(api, api.graph_instantiate(&exec, graph, 0), "cuGraphInstantiate");
  return {api, exec};
}

DeviceBuffer::DeviceBuffer(const Api& api, std::size_t bytes) : api_(&api), bytes_(bytes) {
  if (bytes == 0) return;
  CUdeviceptr address = 0;
  const CUresult result = api.mem_alloc(&address, bytes);
  if (result != CUDA_SUCCESS)
    throw Error(ErrorCode::driver,
                fmt::format("cuMemAlloc of {} bytes failed: {}", bytes, describe(api, result)));
  memory_ = OwnedMemory(api, address);
}

void DeviceBuffer::fill(std::uint8_t value, CUstream stream) {
  if (bytes_ != 0) check(*api_, api_->memset_d8_async(address(), value, bytes_, stream), "cuMemsetD8Async");
}

void DeviceBuffer::write(const void* host, std::size_t bytes, CUstream stream, std::size_t offset) {
  if (bytes == 0) return;
  check(*api_, api_->memcpy_h2d_async(address() + offset, host, bytes, stream), "cuMemcpyHtoDAsync");
}

void DeviceBuffer::read(void* host, std::size_t bytes, CUstream stream, std::size_t offset) const {
  if (bytes == 0) return;
  check(*api_, api_->memcpy_d2h_async(host, address() + offset, bytes, stream), "cuMemcpyDtoHAsync");
}

}  // namespace mxjit::driver
