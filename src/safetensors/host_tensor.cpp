#include "safetensors/host_tensor.hpp"

namespace mxjit {

std::int64_t HostTensor::elements() const {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) count *= extent;
  return count;
}

}  // namespace mxjit
