// libFuzzer target: no input crashes the safetensors reader, and what it accepts survives a round trip.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "mxjit/error.hpp"
#include "safetensors/safetensors.hpp"

namespace {

bool equal(const mxjit::safetensors::File& a, const mxjit::safetensors::File& b) {
  if (a.metadata != b.metadata || a.tensors.size() != b.tensors.size()) return false;
  for (const auto& [name, tensor] : a.tensors) {
    const auto other = b.tensors.find(name);
    if (other == b.tensors.end() || other->second.dtype != tensor.dtype ||
        other->second.shape != tensor.shape || other->second.bytes != tensor.bytes) {
      return false;
    }
  }
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  mxjit::safetensors::File file;
  try {
    file = mxjit::safetensors::parse(std::string_view(reinterpret_cast<const char*>(data), size));
  } catch (const mxjit::Error&) {
    return 0;
  }
  if (!equal(mxjit::safetensors::parse(mxjit::safetensors::serialize(file)), file)) std::abort();
  return 0;
}
