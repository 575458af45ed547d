// Errors of the public API.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "mxjit/export.h"

namespace mxjit {

/// What kind of failure an Error reports. The command line maps it to its exit status.
enum class ErrorCode {
  invalid_argument,   ///< the caller's problem, tensor or option is wrong; nothing was launched or written
  unsupported,        ///< a valid problem that this version or this device does not execute
  unavailable,        ///< a needed part is missing here: GPU, driver, NVRTC
  compile_failed,     ///< NVRTC refused a generated source
  compile_forbidden,  ///< the kernel is in no cache layer and compilation is forbidden
  not_loaded,         ///< the kernel would have to be loaded while the stream captures; the capture is intact
  context_lost,       ///< the CUDA context was destroyed or reset, or is of the process forked from
  driver,             ///< a CUDA driver call failed
  io,                 ///< a file could not be read or written
  internal,           ///< a fault of this library
};

MXJIT_API std::string_view to_string(ErrorCode code);

/// Thrown by every public function that can fail. `argument()` names the argument or, for a problem file, the
/// JSON pointer of the field; it is empty where no single argument is at fault.
class MXJIT_API Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message, std::string argument = {});

  ErrorCode code() const noexcept { return code_; }
  const std::string& argument() const noexcept { return argument_; }

 private:
  ErrorCode code_;
  std::string argument_;
};

}  // namespace mxjit
