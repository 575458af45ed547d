#include "contract/golden.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "problem/problem.hpp"
#include "reference/reference.hpp"
#include "safetensors/safetensors.hpp"

namespace mxjit::contract {

std::filesystem::path goldens() {
  const char* folder = std::getenv("MXJIT_GOLDENS");
  return folder == nullptr ? "" : folder;
}

std::string read_text(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  EXPECT_TRUE(stream) << path;
  return {std::istreambuf_iterator<char>(stream), {}};
}

Comparison read_comparison(const std::filesystem::path& path) {
  const std::string text = nlohmann::json::parse(read_text(path)).at("compare");
  if (text.starts_with("bytes")) return {Comparison::Kind::bytes, 0.0};
  if (text.starts_with("values")) return {Comparison::Kind::values, 0.0};
  const std::size_t bound = text.find("<= ");
  EXPECT_TRUE(text.starts_with("close") && bound != std::string::npos) << text;
  return {Comparison::Kind::close, nlohmann::json::parse(text.substr(bound + 3)).get<double>()};
}

namespace {

// The decoders of the tests are their own, so that they share no mistake with the code under test.
double number(const HostTensor& tensor, std::size_t index) {
  const std::uint8_t* at = tensor.bytes.data() + index * size_of(tensor.dtype);
  if (tensor.dtype == DType::fp64) {
    double value = 0.0;
    std::memcpy(&value, at, sizeof value);
    return value;
  }
  std::uint32_t bits = 0;
  std::memcpy(&bits, at, size_of(tensor.dtype));
  if (tensor.dtype == DType::fp16) {
    const double sign = (bits >> 15) != 0 ? -1.0 : 1.0;
    const int exponent = static_cast<int>(bits >> 10 & 0x1F);
    const double mantissa = bits & 0x3FF;
    if (exponent == 31) return mantissa != 0 ? std::nan("") : sign * HUGE_VAL;
    return sign * (exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25));
  }
  if (tensor.dtype == DType::bf16) bits <<= 16;
  float value = 0.0F;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

bool is_nan(const HostTensor& tensor, std::size_t index) {
  switch (tensor.dtype) {
    case DType::e4m3:
      return (tensor.bytes[index] & 0x7F) == 0x7F;
    case DType::e5m2:
      return (tensor.bytes[index] & 0x7F) > 0x7C;
    case DType::bf16:
    case DType::fp16:
    case DType::fp32:
    case DType::fp64:
      return std::isnan(number(tensor, index));
    default:
      return false;
  }
}

std::string byte_difference(const HostTensor& output, const HostTensor& expected) {
  const std::size_t size = size_of(output.dtype);
  std::size_t wrong = 0;
  std::string first;
  for (std::size_t i = 0; i < output.bytes.size() / size; ++i) {
    if (std::memcmp(&output.bytes[i * size], &expected.bytes[i * size], size) == 0) continue;
    const bool both_nan = is_nan(output, i) && is_nan(expected, i);
    if (both_nan && (size > 1 || output.bytes[i] == 0x7F)) continue;
    if (wrong++ == 0) {
      first = fmt::format("element {}: got {:02x}, expected {:02x}", i,
                          fmt::join(&output.bytes[i * size], &output.bytes[i * size] + size, ""),
                          fmt::join(&expected.bytes[i * size], &expected.bytes[i * size] + size, ""));
    }
  }
  return wrong == 0 ? "" : fmt::format("{} elements differ, the first is {}", wrong, first);
}

std::string distance(const HostTensor& output, const HostTensor& expected, double tolerance) {
  double error = 0.0;
  double norm = 0.0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(output.elements()); ++i) {
    const double delta = number(output, i) - number(expected, i);
    error += delta * delta;
    norm += number(expected, i) * number(expected, i);
  }
  const double relative = std::sqrt(error / norm);
  return relative <= tolerance ? "" : fmt::format("relative distance {}, allowed {}", relative, tolerance);
}

}  // namespace

std::string difference(const HostTensor& output, const HostTensor& expected, const Comparison& comparison) {
  if (output.shape != expected.shape) {
    return fmt::format("shape [{}], expected [{}]", fmt::join(output.shape, ","),
                       fmt::join(expected.shape, ","));
  }
  if (comparison.kind == Comparison::Kind::close) return distance(output, expected, comparison.tolerance);
  if (output.dtype != expected.dtype) {
    return fmt::format("dtype {}, expected {}", to_string(output.dtype), to_string(expected.dtype));
  }
  return byte_difference(output, expected);
}

void check_case(const std::filesystem::path& folder) {
  const problem::Problem problem = problem::parse(read_text(folder / "problem.json"));
  const safetensors::File in = safetensors::read(folder / "in.safetensors");
  const safetensors::File expect = safetensors::read(folder / "expect.safetensors");
  const Comparison comparison = read_comparison(folder / "expect.json");
  const TensorMap out = reference::run(problem, in.tensors);
  EXPECT_EQ(out.size(), expect.tensors.size());
  for (const auto& [name, expected] : expect.tensors) {
    const auto found = out.find(name);
    if (found == out.end()) {
      ADD_FAILURE() << "no output " << name;
      continue;
    }
    EXPECT_EQ(difference(found->second, expected, comparison), "") << name;
  }
}

}  // namespace mxjit::contract
