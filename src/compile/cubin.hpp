// What a cubin says of itself: an ELF file, read with every bound checked.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mxjit::compile {

struct CubinFacts {
  int sm = 0;                        // 90, from the ELF flags
  std::string target;                // "sm_90a" where the cubin's tool note tells, else empty
  std::string build;                 // "13.0.88" likewise
  std::vector<std::string> kernels;  // global functions
  int registers = 0;                 // of the function `symbol`; 0 where the cubin does not tell
  int stack_bytes = 0;
};

/// Throws Error(io) with the reason: no 64-bit ELF file of the CUDA machine, a table outside the file, no
/// function `symbol`.
CubinFacts inspect_cubin(std::span<const std::uint8_t> cubin, std::string_view symbol);

}  // namespace mxjit::compile
