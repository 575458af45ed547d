// Checks that the entries share: a tensor's memory and shape, scales, overlaps, and whose memory it is.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "driver/device_context.hpp"
#include "mxjit/types.hpp"

namespace mxjit::dispatch {

using Extents = std::array<std::int64_t, 4>;

/// size_of, known to the inliner: called for every tensor of every launch.
inline std::uint64_t size_of_element(DType dtype) noexcept {
  switch (dtype) {
    case DType::bf16:
    case DType::fp16:
    case DType::u16:
    case DType::i16:
      return 2;
    case DType::fp32:
    case DType::u32:
    case DType::i32:
      return 4;
    case DType::fp64:
    case DType::u64:
    case DType::i64:
      return 8;
    default:
      return 1;
  }
}

/// Elements between consecutive rows, the default of packed rows filled in. Expects a rank of at least 1.
inline std::int64_t row_pitch(const Tensor& tensor) noexcept {
  return tensor.pitch != 0 ? tensor.pitch : tensor.shape[static_cast<std::size_t>(tensor.rank) - 1];
}

/// Throws Error(invalid_argument) naming the argument.
[[noreturn, gnu::cold]] void refuse(const char* argument, const std::string& expected,
                                    const std::string& came);

[[gnu::cold]] std::string shape_text(const Extents& shape, int rank);

constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

/// Products of extents; `ok` turns false on overflow and stays so.
struct Checked {
  bool ok = true;
  std::int64_t times(std::int64_t a, std::int64_t b) {
    std::int64_t product = 0;
    if (__builtin_mul_overflow(a, b, &product)) ok = false;
    return ok ? product : 0;
  }
  std::int64_t round_up(std::int64_t a, std::int64_t b) { return times(ceil_div(a, b), b); }
};

/// The bytes of a tensor: `rows` rows of `row_bytes`, `pitch_bytes` apart.
struct Span {
  const char* name = nullptr;
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;  // equal to begin where there are no bytes
  std::uint64_t row_bytes = 0;
  std::uint64_t pitch_bytes = 0;
  std::uint64_t rows = 0;
};

/// True where the two share a byte.
bool overlap(const Span& a, const Span& b);

/// Checks pitch, size, pointer and element alignment of a tensor whose dtype and shape are right.
Span check_memory(const char* name, const Tensor& tensor);

/// A vector of int32: ends of groups, the status.
Span check_words(const char* name, const Tensor& tensor, std::int64_t extent);

void check_shape(const char* name, const Tensor& tensor, const Extents& shape, int rank);

struct ScaleShape {
  Extents shape{};
  int rank = 0;
};

/// The scales of `across` x `along` elements, blocks lying along the second; `experts` < 0: a 2D problem.
ScaleShape scale_shape(const char* name, const Block& block, ScaleLayout layout, std::int64_t experts,
                       std::int64_t across, std::int64_t along);

/// Dtype, shape and memory of scales, which are packed.
Span check_scales(const char* name, const Tensor& tensor, Scaling scaling, const ScaleShape& expected);

/// Asks the driver whether a tensor with memory lies in that of `device`.
void check_pointer(const driver::DeviceContext& device, const char* name, const Tensor& tensor);

}  // namespace mxjit::dispatch
