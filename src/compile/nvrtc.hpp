// Source -> cubin with NVRTC, opened at run time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "codegen/descriptor.hpp"

namespace mxjit::compile {

struct Resources {  // of the one kernel, read from the cubin
  int registers = 0;
  int shared_bytes = 0;  // static
  int spill_bytes = 0;   // stores + loads
  int stack_bytes = 0;
};

struct Compiled {
  std::vector<std::uint8_t> cubin;
  std::string symbol;
  std::string build;  // NVRTC version, "13.0.88"
  std::string log;    // compiler's warnings, may be empty
  Resources resources;
  double milliseconds = 0;
};

/// A process-wide NVRTC. Thread-safe: calls compile in parallel.
class Nvrtc {
 public:
  /// Opens MXJIT_NVRTC if set, else libnvrtc by name, then the customary places. Throws Error(unavailable).
  static std::shared_ptr<Nvrtc> open(const std::string& path_override = {});

  virtual ~Nvrtc() = default;
  virtual const std::string& build() const = 0;  // version, without compiling anything
  virtual const std::string& path() const = 0;
  /// Throws Error(compile_failed) with NVRTC's log and the descriptor.
  virtual Compiled compile(const codegen::KernelDescriptor& descriptor) = 0;
  virtual std::string ptx(const codegen::KernelDescriptor& descriptor) = 0;
};

}  // namespace mxjit::compile
