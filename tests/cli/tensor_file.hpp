// A safetensors file made and read by hand, without the code under test.
#pragma once

#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace mxjit::test {

struct FileTensor {
  std::string name, dtype;  // dtype as the format spells it: "BF16"
  std::vector<std::int64_t> shape;
  std::string bytes;
};

inline std::string with_header(const std::string& header, const std::string& data) {
  std::uint64_t length = header.size();
  std::string image(8, '\0');
  for (char& byte : image) {
    byte = static_cast<char>(length & 0xff);
    length >>= 8U;
  }
  return image + header + data;
}

inline std::string tensor_file(const std::vector<FileTensor>& tensors,
                               const nlohmann::json& metadata = nullptr) {
  nlohmann::json header = nlohmann::json::object();
  if (!metadata.is_null()) header["__metadata__"] = metadata;
  std::string data;
  for (const FileTensor& tensor : tensors) {
    header[tensor.name] = {{"dtype", tensor.dtype},
                           {"shape", tensor.shape},
                           {"data_offsets", {data.size(), data.size() + tensor.bytes.size()}}};
    data += tensor.bytes;
  }
  return with_header(header.dump(), data);
}

struct ReadFile {
  nlohmann::json header;
  std::string data;

  explicit ReadFile(const std::string& image) {
    if (image.size() < 8) throw std::runtime_error("no header");
    std::uint64_t length = 0;
    for (int i = 7; i >= 0; --i) length = length << 8U | static_cast<std::uint8_t>(image[i]);
    header = nlohmann::json::parse(image.substr(8, length));
    data = image.substr(8 + length);
  }
  std::string bytes(const std::string& name) const {
    const auto& offsets = header.at(name).at("data_offsets");
    const std::size_t begin = offsets[0], end = offsets[1];
    return data.substr(begin, end - begin);
  }
  std::string dtype(const std::string& name) const { return header.at(name).at("dtype"); }
  std::vector<std::int64_t> shape(const std::string& name) const { return header.at(name).at("shape"); }
};

/// `count` copies of a 16-bit value, little-endian.
inline std::string repeat16(std::uint16_t value, std::size_t count) {
  std::string bytes;
  for (std::size_t i = 0; i < count; ++i) {
    bytes += static_cast<char>(value & 0xff);
    bytes += static_cast<char>(value >> 8U);
  }
  return bytes;
}

inline constexpr std::uint16_t bf16_one = 0x3f80;
/// The bytes of 64 of them.
inline const std::string ones = repeat16(bf16_one, 64);

/// A quantize problem over (rows, cols) of bf16.
inline std::string quantize_problem(std::int64_t rows, std::int64_t cols) {
  return nlohmann::json{{"schema", 1},
                        {"op", "quantize"},
                        {"scaling", "mx"},
                        {"block", 32},
                        {"input", {{"dtype", "bf16"}, {"shape", {rows, cols}}}}}
      .dump();
}

}  // namespace mxjit::test
