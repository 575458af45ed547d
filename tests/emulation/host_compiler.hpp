// Compiles a kernel descriptor's source for the host: NVRTC's place in an emulated context.
#pragma once

#include <string>

#include "compile/compiler.hpp"

namespace mxjit::emulation {

/// The "cubin" is an ELF file that passes the cache's checks and carries the shared object. The compiler is
/// MXJIT_EMULATION_CXX, or c++.
class HostCompiler : public compile::Compiler {
 public:
  std::string identity() override;
  compile::Compiled compile(const codegen::KernelDescriptor& descriptor) override;
};

/// The shared object of a source whose kernel is `symbol`. Throws Error(compile_failed) with the compiler's
/// log.
std::string compile_for_host(const std::string& source, const std::string& symbol);

/// The shared object that a cubin of HostCompiler's carries.
std::string shared_object(const void* cubin);

}  // namespace mxjit::emulation
