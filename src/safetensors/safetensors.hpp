// The safetensors file format: a checked reader, and a writer that publishes a file whole or not at all.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "safetensors/host_tensor.hpp"

namespace mxjit::safetensors {

struct File {
  TensorMap tensors;
  std::map<std::string, std::string> metadata;  // "__metadata__"
};

/// Parses a whole file image. Throws Error(invalid_argument) that says what is wrong and where: truncated or
/// oversized header, unknown dtype, offsets that overlap, leave gaps or disagree with shape and dtype,
/// extents whose product overflows.
File parse(std::string_view image);
/// Reads and parses `path`. Throws Error(io) when it cannot be read.
File read(const std::filesystem::path& path);
/// As read, without the data: every tensor has its dtype and shape and no bytes.
File read_shapes(const std::filesystem::path& path);
/// Bytes of the file that holds `file`; tensors in order of dtype size (descending), then name, header padded
/// to 8 bytes.
std::string serialize(const File& file);
/// Writes through a private temporary beside `path`, fsync and rename. Throws Error(io) and leaves nothing
/// behind on failure. What killed writers left there goes first (base/file_system.hpp, sweep_temporaries).
void write(const std::filesystem::path& path, const File& file);

}  // namespace mxjit::safetensors
