// Source -> cubin with NVRTC, opened at run time.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/descriptor.hpp"
#include "compile/compiler.hpp"

namespace mxjit::compile {

/// A translation unit and everything it may include: NVRTC sees no file of the machine's.
struct Request {
  std::string source;
  std::vector<codegen::Template> headers;
  std::vector<std::string> options;
  std::string symbol;
  std::string subject;  // what an error is about: the descriptor
};

/// The translation unit of `descriptor`, with the embedded templates.
Request request(const codegen::KernelDescriptor& descriptor);

/// A process-wide NVRTC. Thread-safe: calls compile in parallel.
class Nvrtc {
 public:
  /// Opens `path_override`, else MXJIT_NVRTC if set, else libnvrtc in CUDA_HOME, on the loader's path and in
  /// the customary places. Throws Error(unavailable) that lists what was tried.
  static std::shared_ptr<Nvrtc> open(const std::string& path_override = {});

  virtual ~Nvrtc() = default;
  virtual const std::string& build()
      const = 0;  // version, "13.0.88"; the first call compiles an empty source
  virtual const std::string& identity() const = 0;  // see Compiler::identity
  virtual const std::string& path() const = 0;
  /// Throws Error(compile_failed) with NVRTC's log, the request's subject and the numbered source.
  virtual Compiled compile(const Request& request) = 0;
  virtual std::string ptx(const Request& request) = 0;

  Compiled compile(const codegen::KernelDescriptor& descriptor) { return compile(request(descriptor)); }
  std::string ptx(const codegen::KernelDescriptor& descriptor) { return ptx(request(descriptor)); }
};

/// NVRTC as a Compiler: found when its identity is asked for, opened by the first compilation.
std::shared_ptr<Compiler> nvrtc_compiler(const std::string& path_override = {});

/// Reads registers, spills and static shared memory from what ptxas says under -v. Absent figures stay 0;
/// returns false when it says nothing about spills.
bool read_resources(std::string_view log, Resources& resources);

}  // namespace mxjit::compile
