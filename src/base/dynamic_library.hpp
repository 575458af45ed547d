// A library opened at run time: libcuda and libnvrtc are never linked.
#pragma once

#include <string>
#include <vector>

namespace mxjit {

class DynamicLibrary {
 public:
  /// Opens the first of `names` that loads. Throws Error(unavailable) that lists every attempt and its
  /// reason.
  static DynamicLibrary open(const std::string& what, const std::vector<std::string>& names);

  /// The address of `symbol`, or null.
  void* find(const char* symbol) const;
  /// Like find, but throws Error(unavailable) that names the library and the symbol.
  void* require(const char* symbol) const;
  const std::string& path() const { return path_; }

 private:
  DynamicLibrary(void* handle, std::string path) : handle_(handle), path_(std::move(path)) {}
  void* handle_;  // never closed: driver and compiler keep threads and exit handlers of their own
  std::string path_;
};

}  // namespace mxjit
