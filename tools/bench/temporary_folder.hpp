// A private folder for the life of a suite.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include "mxjit/error.hpp"

namespace mxjit::bench {

class TemporaryFolder {
 public:
  /// Throws Error(io).
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "mxjit-bench-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr)
      throw Error(ErrorCode::io, "no temporary folder could be made: " + name);
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;  // what stays behind is in the system's folder for such things
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace mxjit::bench
