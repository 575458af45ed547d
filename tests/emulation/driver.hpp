// The driver of an emulated device: the stub, but kernels run.
#pragma once

#include "driver/driver.hpp"

namespace mxjit::emulation {

/// An H200's table. Launches run at once, on the calling thread; one that fails prints why and is
/// CUDA_ERROR_LAUNCH_FAILED. A capture keeps launches and fills for the graph instead.
const driver::Api& api();

}  // namespace mxjit::emulation
