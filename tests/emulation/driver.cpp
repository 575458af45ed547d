#include "emulation/driver.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "driver/stub.hpp"
#include "emulation/device/tensor_map.hpp"
#include "emulation/emulator.hpp"
#include "emulation/host_compiler.hpp"

namespace mxjit::emulation {
namespace {

// Loaded for good, as the library loads cubins.
CUresult load(CUlibrary* library, const void* cubin, CUjit_option*, void**, unsigned, CUlibraryOption*,
              void**, unsigned) {
  const std::string object = shared_object(cubin);
  const int file = ::memfd_create("kernel", MFD_CLOEXEC);
  if (file < 0) return CUDA_ERROR_OPERATING_SYSTEM;
  for (std::size_t done = 0; done < object.size();) {
    const ssize_t wrote = ::write(file, object.data() + done, object.size() - done);
    if (wrote <= 0) return CUDA_ERROR_OPERATING_SYSTEM;
    done += static_cast<std::size_t>(wrote);
  }
  try {
    *library = reinterpret_cast<CUlibrary>(new Program(fmt::format("/proc/self/fd/{}", file)));
  } catch (const std::runtime_error& error) {
    std::fprintf(stderr, "emulated load: %s\n", error.what());
    return CUDA_ERROR_INVALID_IMAGE;
  }
  return CUDA_SUCCESS;  // the descriptor stays open: another file under its name would be taken for this one
}

CUresult run_now(const Program& program, const Grid& grid, const void* parameters) {
  try {
    run(program, grid, parameters);
  } catch (const std::runtime_error& error) {
    std::fprintf(stderr, "emulated launch: %s\n", error.what());
    return CUDA_ERROR_LAUNCH_FAILED;
  }
  return CUDA_SUCCESS;
}

// What a capture saw, in order. One capture at a time, of whatever stream.
using Graph = std::vector<std::function<CUresult()>>;
Graph* captured = nullptr;

CUresult launch(const CUlaunchConfig* config, CUfunction function, void** parameters, void**) {
  const auto& program = *reinterpret_cast<const Program*>(function);
  const Grid grid{.blocks = {config->gridDimX, config->gridDimY, config->gridDimZ},
                  .threads = config->blockDimX,
                  .shared_bytes = config->sharedMemBytes};
  if (captured == nullptr) return run_now(program, grid, parameters[0]);
  // Some parameters are aligned to 64 bytes.
  const std::size_t bytes = program.parameter_bytes();
  const std::shared_ptr<void> copy(std::aligned_alloc(64, (bytes + 63) / 64 * 64), std::free);
  std::memcpy(copy.get(), parameters[0], bytes);
  captured->push_back([&program, grid, copy] { return run_now(program, grid, copy.get()); });
  return CUDA_SUCCESS;
}

CUresult fill(CUdeviceptr to, unsigned char value, std::size_t bytes, CUstream stream) {
  if (!is_allocated(reinterpret_cast<const void*>(to), bytes)) return CUDA_ERROR_INVALID_VALUE;
  const auto now = [=] { return driver::stub_api().memset_d8_async(to, value, bytes, stream); };
  if (captured == nullptr) return now();
  captured->push_back(now);
  return CUDA_SUCCESS;
}

void capture_graphs(driver::Api& table) {
  table.stream_begin_capture = [](CUstream stream, CUstreamCaptureMode mode) {
    captured = new Graph;
    return driver::stub_api().stream_begin_capture(stream, mode);
  };
  table.stream_end_capture = [](CUstream stream, CUgraph* graph) {
    const CUresult result = driver::stub_api().stream_end_capture(stream, graph);
    *graph = reinterpret_cast<CUgraph>(std::exchange(captured, nullptr));
    return result;
  };
  table.graph_instantiate = [](CUgraphExec* exec, CUgraph graph, unsigned long long) {
    *exec = reinterpret_cast<CUgraphExec>(new Graph(*reinterpret_cast<const Graph*>(graph)));
    return CUDA_SUCCESS;
  };
  table.graph_launch = [](CUgraphExec exec, CUstream) {
    for (const auto& node : *reinterpret_cast<const Graph*>(exec))
      if (const CUresult result = node(); result != CUDA_SUCCESS) return result;
    return CUDA_SUCCESS;
  };
  table.graph_exec_destroy = [](CUgraphExec exec) {
    delete reinterpret_cast<const Graph*>(exec);
    return CUDA_SUCCESS;
  };
  table.graph_destroy = [](CUgraph graph) {
    delete reinterpret_cast<const Graph*>(graph);
    return CUDA_SUCCESS;
  };
}

unsigned element_bytes(CUtensorMapDataType type) {
  switch (type) {
    case CU_TENSOR_MAP_DATA_TYPE_UINT8:
      return 1;
    case CU_TENSOR_MAP_DATA_TYPE_UINT16:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT16:
    case CU_TENSOR_MAP_DATA_TYPE_BFLOAT16:
      return 2;
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT32:
    case CU_TENSOR_MAP_DATA_TYPE_UINT32:
    case CU_TENSOR_MAP_DATA_TYPE_INT32:
      return 4;
    default:
      return 0;
  }
}

unsigned swizzle_bytes(CUtensorMapSwizzle swizzle) {
  switch (swizzle) {
    case CU_TENSOR_MAP_SWIZZLE_32B:
      return 32;
    case CU_TENSOR_MAP_SWIZZLE_64B:
      return 64;
    case CU_TENSOR_MAP_SWIZZLE_128B:
      return 128;
    default:
      return 0;
  }
}

// Refuses what the driver refuses.
CUresult encode(CUtensorMap* out, CUtensorMapDataType type, cuuint32_t rank, void* base,
                const cuuint64_t* extents, const cuuint64_t* pitches, const cuuint32_t* box,
                const cuuint32_t* steps, CUtensorMapInterleave, CUtensorMapSwizzle swizzle,
                CUtensorMapL2promotion, CUtensorMapFloatOOBfill) {
  if (rank != 2 && rank != 4) return CUDA_ERROR_INVALID_VALUE;
  EmulatedMap map{.base = static_cast<unsigned char*>(base),
                  .extents = {1, 1, 1, 1},
                  .pitches = {element_bytes(type), 0, 0, 0},
                  .box = {1, 1, 1, 1},
                  .element = element_bytes(type),
                  .swizzle = swizzle_bytes(swizzle)};
  for (cuuint32_t i = 0; i < rank; ++i) {
    map.extents[i] = extents[i];
    map.box[i] = box[i];
    if (i > 0) map.pitches[i] = pitches[i - 1];
    if (extents[i] == 0 || box[i] == 0 || box[i] > 256 || steps[i] != 1) return CUDA_ERROR_INVALID_VALUE;
    if (i > 0 && (map.pitches[i] % 16 != 0 || map.pitches[i] >= cuuint64_t{1} << 40))
      return CUDA_ERROR_INVALID_VALUE;
  }
  const unsigned row = map.box[0] * map.element;
  if (map.element == 0 || reinterpret_cast<std::uintptr_t>(base) % 16 != 0 || row % 16 != 0 ||
      (map.swizzle != 0 && row > map.swizzle))
    return CUDA_ERROR_INVALID_VALUE;
  std::memset(out, 0, sizeof *out);
  std::memcpy(out, &map, sizeof map);
  return CUDA_SUCCESS;
}

driver::Api make_api() {
  driver::Api table = driver::stub_api();
  table.mem_alloc = [](CUdeviceptr* address, std::size_t bytes) {
    const CUresult result = driver::stub_api().mem_alloc(address, bytes);
    if (result == CUDA_SUCCESS) add_allocation(reinterpret_cast<void*>(*address), bytes);
    return result;
  };
  table.mem_free = [](CUdeviceptr address) {
    if (address != 0 && !remove_allocation(reinterpret_cast<void*>(address))) return CUDA_ERROR_INVALID_VALUE;
    return driver::stub_api().mem_free(address);
  };
  table.library_load_data = load;
  table.library_get_kernel = [](CUkernel* kernel, CUlibrary library, const char*) {
    return *kernel = reinterpret_cast<CUkernel>(library), CUDA_SUCCESS;
  };
  table.kernel_get_function = [](CUfunction* function, CUkernel kernel) {
    return *function = reinterpret_cast<CUfunction>(kernel), CUDA_SUCCESS;
  };
  table.tensor_map_encode_tiled = encode;
  table.launch_kernel_ex = launch;
  table.memset_d8_async = fill;
  capture_graphs(table);
  return table;
}

}  // namespace

const driver::Api& api() {
  static const driver::Api table = make_api();
  return table;
}

}  // namespace mxjit::emulation
