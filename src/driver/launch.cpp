#include "driver/launch.hpp"

namespace mxjit::driver {

void launch(const Api& api, const LoadedKernel& kernel, const GridExtents& blocks, void* params,
            CUstream stream) {
  CUlaunchAttribute early;
  early.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
  early.value.programmaticStreamSerializationAllowed = 1;
  CUlaunchConfig config{};
  config.gridDimX = blocks.x;
  config.gridDimY = blocks.y;
  config.gridDimZ = blocks.z;
  config.blockDimX = static_cast<unsigned>(kernel.threads);
  config.blockDimY = config.blockDimZ = 1;
  config.sharedMemBytes = static_cast<unsigned>(kernel.shared_bytes);
  config.hStream = stream;
  config.attrs = &early;
  config.numAttrs = kernel.start == Start::early ? 1 : 0;
  void* arguments[] = {params};
  const CUresult result = api.launch_kernel_ex(&config, kernel.function, arguments, nullptr);
  if (result != CUDA_SUCCESS) check(api, result, "cuLaunchKernelEx");
}

}  // namespace mxjit::driver
