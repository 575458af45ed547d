// A folder that appears whole or not at all.
#pragma once

#include <filesystem>
#include <optional>

#include "base/file_system.hpp"

namespace mxjit::cli {

/// Refuses, as Error(invalid_argument), an output folder that is a file or not empty, lies inside `input`, or
/// whose own folder does not exist. Returns its name without a slash at the end.
std::filesystem::path check_output_folder(const std::filesystem::path& given,
                                          const std::filesystem::path& input);

/// A private folder beside `out`, which becomes `out` when it is published, and is removed otherwise. What
/// killed processes left beside `out` goes first: folders of this kind whose maker is gone.
class NewFolder {
 public:
  /// Throws Error(io).
  explicit NewFolder(std::filesystem::path out);
  ~NewFolder();
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  /// Throws Error(io); then nothing is at `out`.
  void publish();

 private:
  std::filesystem::path out_, path_;
  std::optional<OpenFile> lock_;  // held while this lives
};

}  // namespace mxjit::cli
