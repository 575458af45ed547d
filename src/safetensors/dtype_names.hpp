// The dtype names of the safetensors format.
#pragma once

#include <optional>
#include <string_view>

#include "mxjit/types.hpp"

namespace mxjit::safetensors {

std::string_view dtype_name(DType dtype);
std::optional<DType> dtype_from_name(std::string_view name);

}  // namespace mxjit::safetensors
