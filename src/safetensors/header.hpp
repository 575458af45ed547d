// The JSON header of a safetensors file: what it says about each tensor, checked.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "mxjit/types.hpp"
#include "safetensors/safetensors.hpp"

namespace mxjit::safetensors {

/// One tensor as the header declares it; its bytes are [begin, end) of the data that follows the header.
struct Entry {
  std::string name;
  DType dtype = DType::u8;
  std::vector<std::int64_t> shape;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

struct Header {
  std::vector<Entry> entries;  // in the order of their data
  std::map<std::string, std::string> metadata;
};

inline constexpr std::uint64_t length_bytes = 8;              // the little-endian length before the header
inline constexpr std::uint64_t largest_header = 100'000'000;  // what the Python package accepts

/// Length of the header that starts a file of `file_size` bytes, from its first bytes. Throws
/// Error(invalid_argument) when the file cannot hold it.
std::uint64_t header_length(std::string_view first_bytes, std::uint64_t file_size);
/// Parses the header text that precedes `data_size` bytes of tensor data. Throws Error(invalid_argument).
Header parse_header(std::string_view text, std::uint64_t data_size);
/// The first bytes of the file that holds `file`: length, header and padding. Fills `order` with the tensors
/// in the order of their data. Throws Error(invalid_argument) when a tensor is malformed.
std::string format_header(const File& file, std::vector<const HostTensor*>& order);

}  // namespace mxjit::safetensors
