// A tensor held in host memory, and the named set of them that one problem reads or writes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "mxjit/types.hpp"

namespace mxjit {

struct HostTensor {
  DType dtype = DType::u8;
  std::vector<std::int64_t> shape;
  std::vector<std::uint8_t> bytes;  // packed row-major, little-endian

  std::int64_t elements() const;
};

using TensorMap = std::map<std::string, HostTensor>;

}  // namespace mxjit
