// Where a cache looks and writes.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/file_system.hpp"
#include "compile/compiler.hpp"

namespace mxjit::cache {

struct Options {
  std::optional<std::filesystem::path> root;  // writable root; none: memory only
  std::vector<std::filesystem::path> layers;  // read-only directories or bundle files, in search order
  bool forbid_compile = false;
  bool trust_root = false;
  std::string nvrtc_path;
  bool locks = true;                           // among processes: one compiles, the others wait
  std::chrono::milliseconds lock_wait{20000};  // then they compile too

  /// From MXJIT_CACHE_DIR, XDG_CACHE_HOME, HOME; MXJIT_BUNDLE_PATH; MXJIT_COMPILE; MXJIT_CACHE_TRUST_ROOT;
  /// MXJIT_NVRTC. Empty values count as unset, relative XDG_CACHE_HOME and HOME too; nothing on the disk is
  /// looked at. Throws Error(invalid_argument) for a value of MXJIT_COMPILE other than "forbid" and "allow".
  static Options from_environment();
};

/// What tests and benchmarks put in the place of the machine. Null: the real thing.
struct Seams {
  FileSystem* files = nullptr;
  std::shared_ptr<compile::Compiler> compiler;
};

}  // namespace mxjit::cache
