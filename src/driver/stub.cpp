#include "driver/stub.hpp"

#include <cstdlib>
#include <cstring>

#include "driver/forks.hpp"

namespace mxjit::driver {
namespace {

// Handles are addresses of these; the driver's handle types are opaque pointers.
std::array<int, Stub::devices> contexts;
int library, kernel, function, graph;
thread_local CUcontext current_context = nullptr;
thread_local CUstreamCaptureMode capture_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

template <typename Handle, typename Target>
Handle handle_of(Target& target) {
  return reinterpret_cast<Handle>(&target);
}

int device_of(CUcontext context) {
  for (int device = 0; device < Stub::devices; ++device)
    if (context == handle_of<CUcontext>(contexts[static_cast<std::size_t>(device)])) return device;
  return -1;
}

std::atomic<unsigned long long>& id_of(int device) {
  return stub().context_ids[static_cast<std::size_t>(device)];
}

std::atomic<unsigned long long>& next_id() {
  static std::atomic<unsigned long long> next{1};
  return next;
}

CUresult get_attribute(int* value, CUdevice_attribute which, CUdevice) {
  switch (which) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      *value = 9;
      break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
      *value = 132;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
      *value = 232448;
      break;
    default:
      *value = 0;
  }
  return CUDA_SUCCESS;
}

CUresult get_context_id(CUcontext context, unsigned long long* id) {
  const int device = device_of(context == nullptr ? current_context : context);
  if (device < 0) return CUDA_ERROR_INVALID_CONTEXT;
  *id = id_of(device).load(std::memory_order_relaxed);
  return *id == 0 ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_SUCCESS;
}

CUresult allocate(CUdeviceptr* address, std::size_t bytes) {
  void* memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  if (memory == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  *address = reinterpret_cast<CUdeviceptr>(memory);
  return CUDA_SUCCESS;
}

void* host(CUdeviceptr address) { return reinterpret_cast<void*>(address); }

Api make_api() {
  Api api;
  api.forks = watch_forks();
  api.init = [](unsigned) { return CUDA_SUCCESS; };
  api.driver_get_version = [](int* version) { return *version = CUDA_VERSION, CUDA_SUCCESS; };
  api.get_error_name = [](CUresult, const char** name) { return *name = "CUDA_ERROR_OF_STUB", CUDA_SUCCESS; };
  api.get_error_string = [](CUresult, const char** text) { return *text = "asked for", CUDA_SUCCESS; };
  api.device_get_count = [](int* count) { return *count = Stub::devices, CUDA_SUCCESS; };
  api.device_get = [](CUdevice* device, int ordinal) { return *device = ordinal, CUDA_SUCCESS; };
  api.device_get_name = [](char* name, int length, CUdevice) {
    return std::strncpy(name, "NVIDIA H200", static_cast<std::size_t>(length)), CUDA_SUCCESS;
  };
  api.device_get_attribute = get_attribute;
  api.device_total_mem = [](std::size_t* bytes, CUdevice) {
    return *bytes = std::size_t{1} << 37, CUDA_SUCCESS;
  };
  api.primary_ctx_retain = [](CUcontext* context, CUdevice device) {
    ++stub().retained[static_cast<std::size_t>(device)];
    return *context = handle_of<CUcontext>(contexts[static_cast<std::size_t>(device)]), CUDA_SUCCESS;
  };
  api.primary_ctx_release = [](CUdevice device) {
    return --stub().retained[static_cast<std::size_t>(device)], CUDA_SUCCESS;
  };
  api.primary_ctx_reset = [](CUdevice device) { return stub().reset_context(device), CUDA_SUCCESS; };
  api.ctx_get_current = [](CUcontext* context) { return *context = current_context, CUDA_SUCCESS; };
  api.ctx_set_current = [](CUcontext context) { return current_context = context, CUDA_SUCCESS; };
  api.ctx_get_device = [](CUdevice* device) {
    *device = device_of(current_context);
    return *device < 0 ? CUDA_ERROR_INVALID_CONTEXT : CUDA_SUCCESS;
  };
  api.ctx_get_id = get_context_id;
  api.ctx_synchronize = [] { return CUDA_SUCCESS; };
  api.mem_alloc = allocate;
  api.mem_free = [](CUdeviceptr address) { return std::free(host(address)), CUDA_SUCCESS; };
  api.mem_get_info = [](std::size_t* left, std::size_t* total) {
    return *left = *total = std::size_t{1} << 37, CUDA_SUCCESS;
  };
  api.memcpy_h2d_async = [](CUdeviceptr to, const void* from, std::size_t bytes, CUstream) {
    return std::memcpy(host(to), from, bytes), CUDA_SUCCESS;
  };
  api.memcpy_d2h_async = [](void* to, CUdeviceptr from, std::size_t bytes, CUstream) {
    return std::memcpy(to, host(from), bytes), CUDA_SUCCESS;
  };
  api.memcpy_d2d_async = [](CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream) {
    return std::memmove(host(to), host(from), bytes), CUDA_SUCCESS;
  };
  api.memset_d8_async = [](CUdeviceptr to, unsigned char value, std::size_t bytes, CUstream) {
    return std::memset(host(to), value, bytes), CUDA_SUCCESS;
  };
  // Every address is memory of the device whose context is current.
  api.pointer_get_attribute = [](void* value, CUpointer_attribute, CUdeviceptr) {
    return *static_cast<int*>(value) = device_of(current_context), CUDA_SUCCESS;
  };
  api.stream_create = [](CUstream* stream, unsigned) {
    return *stream = handle_of<CUstream>(library), CUDA_SUCCESS;
  };
  api.stream_destroy = [](CUstream) { return CUDA_SUCCESS; };
  api.stream_synchronize = [](CUstream) { return CUDA_SUCCESS; };
  api.stream_is_capturing = [](CUstream, CUstreamCaptureStatus* status) {
    ++stub().capture_queries;
    return *status = stub().capture.load(), CUDA_SUCCESS;
  };
  api.stream_begin_capture = [](CUstream, CUstreamCaptureMode) {
    return stub().capture = CU_STREAM_CAPTURE_STATUS_ACTIVE, CUDA_SUCCESS;
  };
  api.stream_end_capture = [](CUstream, CUgraph* out) {
    stub().capture = CU_STREAM_CAPTURE_STATUS_NONE;
    return *out = handle_of<CUgraph>(graph), CUDA_SUCCESS;
  };
  api.thread_exchange_capture_mode = [](CUstreamCaptureMode* mode) {
    return std::swap(*mode, capture_mode), CUDA_SUCCESS;
  };
  api.graph_instantiate = [](CUgraphExec* exec, CUgraph, unsigned long long) {
    return *exec = handle_of<CUgraphExec>(graph), CUDA_SUCCESS;
  };
  api.graph_launch = [](CUgraphExec, CUstream) { return CUDA_SUCCESS; };
  api.graph_exec_destroy = [](CUgraphExec) { return CUDA_SUCCESS; };
  api.graph_destroy = [](CUgraph) { return CUDA_SUCCESS; };
  api.event_create = [](CUevent* event, unsigned) {
    return *event = handle_of<CUevent>(graph), CUDA_SUCCESS;
  };
  api.event_destroy = [](CUevent) { return CUDA_SUCCESS; };
  api.event_record = [](CUevent, CUstream) { return CUDA_SUCCESS; };
  api.event_synchronize = [](CUevent) { return CUDA_SUCCESS; };
  api.event_elapsed_time = [](float* ms, CUevent, CUevent) { return *ms = 1, CUDA_SUCCESS; };
  api.library_load_data = [](CUlibrary* out, const void*, CUjit_option*, void**, unsigned, CUlibraryOption*,
                             void**, unsigned) {
    ++stub().library_loads;
    if (capture_mode != CU_STREAM_CAPTURE_MODE_RELAXED) ++stub().strict_loads;
    return *out = handle_of<CUlibrary>(library), CUDA_SUCCESS;
  };
  api.library_unload = [](CUlibrary) { return CUDA_SUCCESS; };
  api.library_get_kernel = [](CUkernel* out, CUlibrary, const char*) {
    return *out = handle_of<CUkernel>(kernel), CUDA_SUCCESS;
  };
  api.kernel_get_function = [](CUfunction* out, CUkernel) {
    ++stub().function_loads;
    return *out = handle_of<CUfunction>(function), CUDA_SUCCESS;
  };
  api.func_load = [](CUfunction) { return CUDA_SUCCESS; };
  api.func_set_attribute = [](CUfunction, CUfunction_attribute, int) { return CUDA_SUCCESS; };
  api.func_get_attribute = [](int* value, CUfunction_attribute, CUfunction) {
    return *value = 0, CUDA_SUCCESS;
  };
  api.occupancy_max_active_blocks = [](int* blocks, CUfunction, int, std::size_t) {
    return *blocks = 2, CUDA_SUCCESS;
  };
  api.tensor_map_encode_tiled = [](CUtensorMap* map, CUtensorMapDataType, cuuint32_t, void*,
                                   const cuuint64_t*, const cuuint64_t*, const cuuint32_t*, const cuuint32_t*,
                                   CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion,
                                   CUtensorMapFloatOOBfill) {
    return std::memset(map, 0, sizeof *map), CUDA_SUCCESS;
  };
  api.tensor_map_replace_address = [](CUtensorMap*, void*) { return CUDA_SUCCESS; };
  api.launch_kernel_ex = [](const CUlaunchConfig* config, CUfunction, void**, void**) {
    stub().launches.fetch_add(1, std::memory_order_relaxed);
    for (unsigned i = 0; i < config->numAttrs; ++i)
      if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION &&
          config->attrs[i].value.programmaticStreamSerializationAllowed != 0)
        stub().early_starts.fetch_add(1, std::memory_order_relaxed);
    return stub().launch_result.load(std::memory_order_relaxed);
  };
  return api;
}

}  // namespace

void Stub::reset() {
  launches = early_starts = library_loads = function_loads = capture_queries = strict_loads = 0;
  launch_result = CUDA_SUCCESS;
  capture = CU_STREAM_CAPTURE_STATUS_NONE;
  for (int device = 0; device < devices; ++device) reset_context(device);
}

void Stub::reset_context(int device) { context_ids[static_cast<std::size_t>(device)] = ++next_id(); }

Stub& stub() {
  static Stub instance;
  [[maybe_unused]] static const bool ready = (instance.reset(), true);
  return instance;
}

const Api& stub_api() {
  static const Api table = make_api();
  return table;
}

}  // namespace mxjit::driver
