// Publishing a file whole or not at all: private temporary in the same directory, fsync, rename, fsync of the
// directory.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <system_error>
#include <utility>

#include "base/file_system.hpp"
#include "mxjit/error.hpp"
#include "safetensors/file_descriptor.hpp"
#include "safetensors/header.hpp"
#include "safetensors/safetensors.hpp"

namespace mxjit::safetensors {
namespace {

[[noreturn]] void fail_write(const std::filesystem::path& path, std::string_view step, int error) {
  throw Error(
      ErrorCode::io,
      fmt::format("cannot write {}: {}: {}", path.string(), step, std::generic_category().message(error)),
      path.string());
}

// A temporary file that removes itself unless it was renamed.
class Temporary {
 public:
  Temporary(const std::filesystem::path& directory, std::filesystem::path target)
      : path_(directory / unique_name(beside_prefix)),
        file_(::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)),
        target_(std::move(target)) {
    if (!file_) fail_write(target_, "create a temporary file beside it", errno);
    host_files().try_lock(file_.get(), 0);  // says that the writer lives
  }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;
  ~Temporary() {
    if (!renamed_) ::unlink(path_.c_str());
  }

  void append(const char* data, std::size_t size) {
    while (size > 0) {
      const ssize_t wrote = ::write(file_.get(), data, size);
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote < 0) fail_write(target_, "write", errno);
      data += wrote;
      size -= static_cast<std::size_t>(wrote);
    }
  }

  void publish() {
    if (::fsync(file_.get()) != 0) fail_write(target_, "fsync", errno);
    if (file_.close() != 0) fail_write(target_, "close", errno);
    if (::rename(path_.c_str(), target_.c_str()) != 0) fail_write(target_, "rename", errno);
    renamed_ = true;
  }

 private:
  std::filesystem::path path_;
  FileDescriptor file_;
  std::filesystem::path target_;
  bool renamed_ = false;
};

}  // namespace

void write(const std::filesystem::path& path, const File& file) {
  std::vector<const HostTensor*> order;
  const std::string header = format_header(file, order);
  const std::filesystem::path parent = path.parent_path();
  const std::filesystem::path directory = parent.empty() ? std::filesystem::path(".") : parent;
  const FileDescriptor directory_file(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory_file) fail_write(path, "open its directory", errno);

  constexpr std::int64_t an_hour = 3600;
  sweep_temporaries(host_files(), directory.string(), an_hour, beside_prefix);
  Temporary temporary(directory, path);
  temporary.append(header.data(), header.size());
  for (const HostTensor* tensor : order) {
    temporary.append(reinterpret_cast<const char*>(tensor->bytes.data()), tensor->bytes.size());
  }
  temporary.publish();
  // The file is whole and in place by now. Some file systems cannot sync a directory; that is not an error.
  if (::fsync(directory_file.get()) != 0 && errno != EINVAL && errno != ENOTSUP) {
    fail_write(path, "fsync its directory (the file is in place)", errno);
  }
}

}  // namespace mxjit::safetensors
