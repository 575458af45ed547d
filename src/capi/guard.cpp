#include "capi/guard.hpp"

#include <cstddef>
#include <cstring>

namespace mxjit::capi {
namespace {

// Plain memory: usable in a thread's last moments, and nothing that keeps an unloaded library in place.
struct LastError {
  mxjit_status status = MXJIT_SUCCESS;
  char message[8192] = "";
  char argument[256] = "";
};
thread_local LastError last;

template <std::size_t size>
void copy(char (&to)[size], const char* from) noexcept {
  static constexpr char cut[] = "...";
  const std::size_t length = std::strlen(from);
  if (length < size) {
    std::memcpy(to, from, length + 1);
    return;
  }
  std::size_t end = size - sizeof cut;
  while (end > 0 && (static_cast<unsigned char>(from[end]) & 0xC0) == 0x80) --end;  // no half of a character
  std::memcpy(to, from, end);
  std::memcpy(to + end, cut, sizeof cut);
}

}  // namespace

mxjit_status status_of(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::invalid_argument:
      return MXJIT_INVALID_ARGUMENT;
    case ErrorCode::unsupported:
      return MXJIT_UNSUPPORTED;
    case ErrorCode::unavailable:
      return MXJIT_UNAVAILABLE;
    case ErrorCode::compile_failed:
      return MXJIT_COMPILE_FAILED;
    case ErrorCode::compile_forbidden:
      return MXJIT_COMPILE_FORBIDDEN;
    case ErrorCode::not_loaded:
      return MXJIT_NOT_LOADED;
    case ErrorCode::context_lost:
      return MXJIT_CONTEXT_LOST;
    case ErrorCode::driver:
      return MXJIT_DRIVER;
    case ErrorCode::io:
      return MXJIT_IO;
    case ErrorCode::internal:
      break;
  }
  return MXJIT_INTERNAL;
}

mxjit_status fail(mxjit_status status, const char* message, const char* argument) noexcept {
  last.status = status;
  copy(last.message, message);
  copy(last.argument, argument);
  return status;
}

}  // namespace mxjit::capi

using mxjit::capi::last;

mxjit_status mxjit_last_status(void) { return last.status; }
const char* mxjit_last_message(void) { return last.message; }
const char* mxjit_last_argument(void) { return last.argument; }

const char* mxjit_status_name(mxjit_status status) {
  switch (status) {
    case MXJIT_SUCCESS:
      return "success";
    case MXJIT_INVALID_ARGUMENT:
      return "invalid argument";
    case MXJIT_UNSUPPORTED:
      return "unsupported";
    case MXJIT_UNAVAILABLE:
      return "unavailable";
    case MXJIT_COMPILE_FAILED:
      return "compile failed";
    case MXJIT_COMPILE_FORBIDDEN:
      return "compile forbidden";
    case MXJIT_NOT_LOADED:
      return "not loaded";
    case MXJIT_CONTEXT_LOST:
      return "context lost";
    case MXJIT_DRIVER:
      return "driver";
    case MXJIT_IO:
      return "io";
    case MXJIT_INTERNAL:
      return "internal";
    case MXJIT_OUT_OF_MEMORY:
      return "out of memory";
    default:
      return "unknown";
  }
}
