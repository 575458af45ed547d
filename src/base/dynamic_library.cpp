#include "base/dynamic_library.hpp"

#include <dlfcn.h>

#include "mxjit/error.hpp"

namespace mxjit {

DynamicLibrary DynamicLibrary::open(const std::string& what, const std::vector<std::string>& names) {
  std::string attempts;
  for (const std::string& name : names) {
    if (void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) return {handle, name};
    const char* reason = dlerror();
    attempts += "\n  " + name + ": " + (reason != nullptr ? reason : "unknown reason");
  }
  throw Error(ErrorCode::unavailable, what + " could not be opened; tried:" + attempts);
}

void* DynamicLibrary::find(const char* symbol) const { return dlsym(handle_, symbol); }

void* DynamicLibrary::require(const char* symbol) const {
  void* address = find(symbol);
  if (address == nullptr) throw Error(ErrorCode::unavailable, path_ + " lacks the entry point " + symbol);
  return address;
}

}  // namespace mxjit
