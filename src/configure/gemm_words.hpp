// GEMM traits as plain words, to compare and to hash.
#pragma once

#include <array>
#include <cstdint>

#include "configure/gemm.hpp"

namespace mxjit::configure {

using GemmWords = std::array<std::uint64_t, 3>;

/// Different for different traits. Bits 32 to 39 of the last word are zero.
GemmWords words(const GemmTraits& traits) noexcept;

}  // namespace mxjit::configure
