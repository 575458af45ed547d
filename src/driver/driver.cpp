#include "driver/driver.hpp"

#include <fmt/format.h>

#include "base/dynamic_library.hpp"
#include "driver/forks.hpp"
#include "mxjit/error.hpp"

namespace mxjit::driver {
namespace {

// cuda.h maps plain names to the versioned ones this header describes (cuMemAlloc -> cuMemAlloc_v2); the
// extra expansion makes the looked-up symbol follow the type.
#define MXJIT_TEXT(name) #name
#define MXJIT_SYMBOL(name) MXJIT_TEXT(name)

template <typename Function>
void bind(Function& member, void* address) {
  member = reinterpret_cast<Function>(address);
}

Api open() {
  const DynamicLibrary library = DynamicLibrary::open("The CUDA driver", {"libcuda.so.1", "libcuda.so"});
  Api api;
#define MXJIT_BIND(member, name) bind(api.member, library.require(MXJIT_SYMBOL(name)))
#define MXJIT_BIND_IF_THERE(member, name) bind(api.member, library.find(MXJIT_SYMBOL(name)))
  MXJIT_BIND(init, cuInit);
  MXJIT_BIND(driver_get_version, cuDriverGetVersion);
  MXJIT_BIND(get_error_name, cuGetErrorName);
  MXJIT_BIND(get_error_string, cuGetErrorString);
  MXJIT_BIND(device_get_count, cuDeviceGetCount);
  MXJIT_BIND(device_get, cuDeviceGet);
  MXJIT_BIND(device_get_name, cuDeviceGetName);
  MXJIT_BIND(device_get_attribute, cuDeviceGetAttribute);
  MXJIT_BIND(device_total_mem, cuDeviceTotalMem);
  MXJIT_BIND(primary_ctx_retain, cuDevicePrimaryCtxRetain);
  MXJIT_BIND(primary_ctx_release, cuDevicePrimaryCtxRelease);
  MXJIT_BIND(primary_ctx_reset, cuDevicePrimaryCtxReset);
  MXJIT_BIND(ctx_get_current, cuCtxGetCurrent);
  MXJIT_BIND(ctx_set_current, cuCtxSetCurrent);
  MXJIT_BIND(ctx_get_device, cuCtxGetDevice);
  MXJIT_BIND(ctx_get_id, cuCtxGetId);
  MXJIT_BIND(ctx_synchronize, cuCtxSynchronize);
  MXJIT_BIND(mem_alloc, cuMemAlloc);
  MXJIT_BIND(mem_free, cuMemFree);
  MXJIT_BIND(mem_get_info, cuMemGetInfo);
  MXJIT_BIND(memcpy_h2d_async, cuMemcpyHtoDAsync);
  MXJIT_BIND(memcpy_d2h_async, cuMemcpyDtoHAsync);
  MXJIT_BIND(memcpy_d2d_async, cuMemcpyDtoDAsync);
  MXJIT_BIND(memset_d8_async, cuMemsetD8Async);
  MXJIT_BIND(pointer_get_attribute, cuPointerGetAttribute);
  MXJIT_BIND(stream_create, cuStreamCreate);
  MXJIT_BIND(stream_destroy, cuStreamDestroy);
  MXJIT_BIND(stream_synchronize, cuStreamSynchronize);
  MXJIT_BIND(stream_is_capturing, cuStreamIsCapturing);
  MXJIT_BIND(stream_begin_capture, cuStreamBeginCapture);
  MXJIT_BIND(stream_end_capture, cuStreamEndCapture);
  MXJIT_BIND(thread_exchange_capture_mode, cuThreadExchangeStreamCaptureMode);
  MXJIT_BIND(graph_instantiate, cuGraphInstantiate);
  MXJIT_BIND(graph_launch, cuGraphLaunch);
  MXJIT_BIND(graph_exec_destroy, cuGraphExecDestroy);
  MXJIT_BIND(graph_destroy, cuGraphDestroy);
  MXJIT_BIND(event_create, cuEventCreate);
  MXJIT_BIND(event_destroy, cuEventDestroy);
  MXJIT_BIND(event_record, cuEventRecord);
  MXJIT_BIND(event_synchronize, cuEventSynchronize);
  // Drivers before CUDA 12.8 export only the first version, of the same signature.
  MXJIT_BIND_IF_THERE(event_elapsed_time, cuEventElapsedTime);
  if (api.event_elapsed_time == nullptr) bind(api.event_elapsed_time, library.require("cuEventElapsedTime"));
  MXJIT_BIND(library_load_data, cuLibraryLoadData);
  MXJIT_BIND(library_unload, cuLibraryUnload);
  MXJIT_BIND(library_get_kernel, cuLibraryGetKernel);
  MXJIT_BIND(kernel_get_function, cuKernelGetFunction);
  MXJIT_BIND_IF_THERE(func_load, cuFuncLoad);  // CUDA 12.4; earlier drivers load on the attribute calls
  MXJIT_BIND(func_set_attribute, cuFuncSetAttribute);
  MXJIT_BIND(func_get_attribute, cuFuncGetAttribute);
  MXJIT_BIND(occupancy_max_active_blocks, cuOccupancyMaxActiveBlocksPerMultiprocessor);
  MXJIT_BIND(tensor_map_encode_tiled, cuTensorMapEncodeTiled);
  MXJIT_BIND(tensor_map_replace_address, cuTensorMapReplaceAddress);
  MXJIT_BIND(launch_kernel_ex, cuLaunchKernelEx);
#undef MXJIT_BIND_IF_THERE
#undef MXJIT_BIND

  api.forks = watch_forks();
  const CUresult result = api.init(0);
  if (result != CUDA_SUCCESS)
    throw Error(ErrorCode::unavailable,
                fmt::format("cuInit failed: {} ({})", describe(api, result), library.path()));
  return api;
}

}  // namespace

const Api& api() {
  static const Api table = open();  // tried again by the next call when it throws
  require_own(table);
  return table;
}

void require_own(const Api& api) {
  if (!forked_since(api.forks)) return;
  throw Error(
      ErrorCode::unavailable,
      "the CUDA driver was initialised before this process was forked, and does not survive that: start "
      "processes before the first use of the GPU, or with exec (\"spawn\")");
}

std::string describe(const Api& api, CUresult result) {
  const char* name = nullptr;
  const char* text = nullptr;
  if (api.get_error_name == nullptr || api.get_error_name(result, &name) != CUDA_SUCCESS)
    name = "unknown error";
  if (api.get_error_string == nullptr || api.get_error_string(result, &text) != CUDA_SUCCESS)
    text = "no text";
  return fmt::format("{} ({}): {}", name, static_cast<int>(result), text);
}

std::string why_no_gpu() {
  try {
    int devices = 0;
    const Api& table = api();
    check(table, table.device_get_count(&devices), "cuDeviceGetCount");
    return devices > 0 ? "" : "the CUDA driver lists no device";
  } catch (const std::exception& error) {
    return error.what();
  }
}

void check(const Api& api, CUresult result, const char* call) {
  if (result == CUDA_SUCCESS) return;
  const bool lost = result == CUDA_ERROR_CONTEXT_IS_DESTROYED || result == CUDA_ERROR_INVALID_CONTEXT ||
                    result == CUDA_ERROR_DEINITIALIZED;
  throw Error(lost ? ErrorCode::context_lost : ErrorCode::driver,
              fmt::format("{} failed: {}", call, describe(api, result)));
}

}  // namespace mxjit::driver
