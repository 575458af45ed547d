#include "bench/device_program.hpp"

#include "compile/nvrtc.hpp"

namespace mxjit::bench {
namespace {

/// A kernel that every such source has: the one the compiler checks the cubin for.
constexpr const char* known_kernel = "empty";

}  // namespace

DeviceProgram::DeviceProgram(const driver::Api& api, const std::string& source, const std::string& target)
    : api_(api) {
  const compile::Request request = {source,
                                    {},
                                    {"--gpu-architecture=" + target, "--std=c++17"},
                                    known_kernel,
                                    "the benchmarks' device code"};
  const std::vector<std::uint8_t> cubin = compile::Nvrtc::open()->compile(request).cubin;
  driver::check(api_,
                api_.library_load_data(&library_, cubin.data(), nullptr, nullptr, 0, nullptr, nullptr, 0),
                "cuLibraryLoadData");
}

DeviceProgram::~DeviceProgram() { api_.library_unload(library_); }

CUfunction DeviceProgram::function(const char* name) const {
  CUkernel kernel = nullptr;
  driver::check(api_, api_.library_get_kernel(&kernel, library_, name), "cuLibraryGetKernel");
  CUfunction function = nullptr;
  driver::check(api_, api_.kernel_get_function(&function, kernel), "cuKernelGetFunction");
  // Loaded now: a function that is first needed inside a capture would be loaded there.
  if (api_.func_load != nullptr) driver::check(api_, api_.func_load(function), "cuFuncLoad");
  return function;
}

void launch_grid(const driver::Api& api, CUfunction function, unsigned blocks, unsigned threads,
                 CUstream stream, std::vector<void*> params) {
  CUlaunchConfig config{};
  config.gridDimX = blocks;
  config.gridDimY = 1;
  config.gridDimZ = 1;
  config.blockDimX = threads;
  config.blockDimY = 1;
  config.blockDimZ = 1;
  config.hStream = stream;
  driver::check(api, api.launch_kernel_ex(&config, function, params.data(), nullptr), "cuLaunchKernelEx");
}

}  // namespace mxjit::bench
