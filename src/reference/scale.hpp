// How a scale follows from the largest magnitude of its block.
#pragma once

#include <cstdint>

#include "mxjit/types.hpp"

namespace mxjit::reference {

/// Scale code of an MX block whose largest magnitude is `amax` (>= 0, infinity or NaN).
std::uint8_t mx_code(float amax, Rounding rounding, DType format);
/// What the data of a block with this code is multiplied by: the reciprocal of the scale, as fp32. NaN for
/// 255.
float mx_factor(std::uint8_t code);

/// Float scales: what the data is multiplied by, fp32(MAX / max(amax, 1e-12)), with Rounding::pow2 lowered to
/// a power of two. The stored scale is its reciprocal in fp32.
float fp32_factor(float amax, Rounding rounding, DType format);

}  // namespace mxjit::reference
