// What turns a kernel descriptor into a cubin: NVRTC, or a stand-in for it in tests.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "codegen/descriptor.hpp"

namespace mxjit::compile {

struct Resources {  // of the one kernel
  int registers = 0;
  int shared_bytes = 0;  // static
  int spill_bytes = 0;   // stores + loads
  int stack_bytes = 0;
  friend bool operator==(const Resources&, const Resources&) = default;
};

struct Compiled {
  std::vector<std::uint8_t> cubin;
  std::string symbol;
  std::string build;     // version of the compiler, "13.0.88": orders builds, and is what people read
  std::string compiler;  // identity of the compiler's binary, see Compiler::identity
  std::string log;       // warnings, may be empty
  Resources resources;
  double milliseconds = 0;
};

/// Thread-safe: calls compile in parallel.
class Compiler {
 public:
  virtual ~Compiler() = default;
  /// Equal for equal compiler binaries, on any machine; empty when there is no compiler here. Compiles
  /// nothing, and does not open the compiler where its file tells.
  virtual std::string identity() = 0;
  /// Throws Error(unavailable) where there is no compiler, Error(compile_failed) with its log, the descriptor
  /// and the source.
  virtual Compiled compile(const codegen::KernelDescriptor& descriptor) = 0;
};

}  // namespace mxjit::compile
