#include "mxjit/error.hpp"

namespace mxjit {

std::string_view to_string(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument:
      return "invalid argument";
    case ErrorCode::unsupported:
      return "unsupported";
    case ErrorCode::unavailable:
      return "unavailable";
    case ErrorCode::compile_failed:
      return "compile failed";
    case ErrorCode::compile_forbidden:
      return "compile forbidden";
    case ErrorCode::not_loaded:
      return "not loaded";
    case ErrorCode::context_lost:
      return "context lost";
    case ErrorCode::driver:
      return "driver";
    case ErrorCode::io:
      return "io";
    case ErrorCode::internal:
      return "internal";
  }
  return "unknown";
}

Error::Error(ErrorCode code, const std::string& message, std::string argument)
    : std::runtime_error(message), code_(code), argument_(std::move(argument)) {}

}  // namespace mxjit
