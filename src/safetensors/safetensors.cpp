#include "safetensors/safetensors.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "mxjit/error.hpp"
#include "safetensors/file_descriptor.hpp"
#include "safetensors/header.hpp"

namespace mxjit::safetensors {
namespace {

HostTensor empty_tensor(const Entry& entry) {
  HostTensor tensor;
  tensor.dtype = entry.dtype;
  tensor.shape = entry.shape;
  tensor.bytes.resize(entry.end - entry.begin);
  return tensor;
}

[[noreturn]] void fail_read(const std::filesystem::path& path, int error) {
  throw Error(ErrorCode::io,
              fmt::format("cannot read {}: {}", path.string(), std::generic_category().message(error)),
              path.string());
}

void read_exactly(const FileDescriptor& file, const std::filesystem::path& path, void* out, std::size_t size,
                  std::uint64_t offset) {
  auto* at = static_cast<char*>(out);
  while (size > 0) {
    const ssize_t got = ::pread(file.get(), at, size, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_read(path, errno);
    if (got == 0)
      throw Error(ErrorCode::io, fmt::format("{} shrank while it was read", path.string()), path.string());
    at += got;
    size -= static_cast<std::size_t>(got);
    offset += static_cast<std::uint64_t>(got);
  }
}

}  // namespace

File parse(std::string_view image) {
  const std::uint64_t length = header_length(image.substr(0, length_bytes), image.size());
  const std::string_view data = image.substr(length_bytes + length);
  Header header = parse_header(image.substr(length_bytes, length), data.size());
  File file;
  file.metadata = std::move(header.metadata);
  for (const Entry& entry : header.entries) {
    HostTensor tensor = empty_tensor(entry);
    std::copy_n(data.begin() + static_cast<std::ptrdiff_t>(entry.begin), tensor.bytes.size(),
                tensor.bytes.begin());
    file.tensors.emplace(entry.name, std::move(tensor));
  }
  return file;
}

namespace {

// Each tensor is read into its own memory, so that a file takes its size once.
File read_file(const std::filesystem::path& path, bool with_data) {
  const FileDescriptor descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!descriptor) fail_read(path, errno);
  struct stat info {};
  if (::fstat(descriptor.get(), &info) != 0) fail_read(path, errno);
  if (S_ISDIR(info.st_mode)) fail_read(path, EISDIR);
  if (!S_ISREG(info.st_mode)) {
    throw Error(ErrorCode::io, fmt::format("cannot read {}: not a regular file", path.string()),
                path.string());
  }
  const auto size = static_cast<std::uint64_t>(info.st_size);
  try {
    std::string start(std::min(size, length_bytes), '\0');
    read_exactly(descriptor, path, start.data(), start.size(), 0);
    std::string text(header_length(start, size), '\0');
    read_exactly(descriptor, path, text.data(), text.size(), length_bytes);
    const std::uint64_t data_start = length_bytes + text.size();
    Header header = parse_header(text, size - data_start);
    File file;
    file.metadata = std::move(header.metadata);
    for (const Entry& entry : header.entries) {
      if (!with_data) {
        file.tensors.emplace(entry.name, HostTensor{.dtype = entry.dtype, .shape = entry.shape, .bytes = {}});
        continue;
      }
      HostTensor tensor = empty_tensor(entry);
      read_exactly(descriptor, path, tensor.bytes.data(), tensor.bytes.size(), data_start + entry.begin);
      file.tensors.emplace(entry.name, std::move(tensor));
    }
    return file;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::invalid_argument) throw;
    throw Error(error.code(), path.string() + ": " + error.what(), error.argument());
  }
}

}  // namespace

File read(const std::filesystem::path& path) { return read_file(path, true); }

File read_shapes(const std::filesystem::path& path) { return read_file(path, false); }

std::string serialize(const File& file) {
  std::vector<const HostTensor*> order;
  std::string image = format_header(file, order);
  for (const HostTensor* tensor : order) image.append(tensor->bytes.begin(), tensor->bytes.end());
  return image;
}

}  // namespace mxjit::safetensors
