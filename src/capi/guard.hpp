// The edge of the C ABI: exceptions become a status and the thread's last error.
#pragma once

#include <new>
#include <string>

#include "mxjit/error.hpp"
#include "mxjit/mxjit.h"

namespace mxjit::capi {

mxjit_status status_of(ErrorCode code) noexcept;

/// Remembers the failure in this thread and returns `status`. Allocates nothing.
mxjit_status fail(mxjit_status status, const char* message, const char* argument) noexcept;

template <typename Call>
mxjit_status guarded(Call&& call) noexcept {
  try {
    call();
    return MXJIT_SUCCESS;
  } catch (const Error& error) {
    return fail(status_of(error.code()), error.what(), error.argument().c_str());
  } catch (const std::bad_alloc&) {
    return fail(MXJIT_OUT_OF_MEMORY, "out of host memory", "");
  } catch (const std::exception& error) {
    return fail(MXJIT_INTERNAL, error.what(), "");
  } catch (...) {
    return fail(MXJIT_INTERNAL, "an exception of an unknown type", "");
  }
}

/// Throws Error(invalid_argument) naming the argument where `pointer` is null.
inline void require(const void* pointer, const char* argument) {
  if (pointer == nullptr)
    throw Error(ErrorCode::invalid_argument, std::string(argument) + ": expected a pointer, got null",
                argument);
}

}  // namespace mxjit::capi
