#include "reference/matrix.hpp"

#include <fmt/format.h>

#include "mxjit/error.hpp"
#include "reference/fp8.hpp"

namespace mxjit::reference {

float element(DType dtype, const std::uint8_t* data, std::int64_t index) {
  const std::uint8_t* at = data + static_cast<std::size_t>(index) * size_of(dtype);
  std::uint16_t half = 0;
  float single = 0.0F;
  switch (dtype) {
    case DType::bf16:
      std::memcpy(&half, at, sizeof half);
      return decode_bf16(half);
    case DType::fp16:
      std::memcpy(&half, at, sizeof half);
      return decode_fp16(half);
    case DType::fp32:
      std::memcpy(&single, at, sizeof single);
      return single;
    case DType::e4m3:
    case DType::e5m2:
      return decode_fp8(dtype, *at);
    default:
      throw Error(ErrorCode::internal,
                  fmt::format("the reference does not read {} as a number", to_string(dtype)));
  }
}

void store(DType dtype, std::uint8_t* data, std::int64_t index, double value) {
  std::uint8_t* at = data + static_cast<std::size_t>(index) * size_of(dtype);
  const auto single = static_cast<float>(value);
  std::uint16_t half = 0;
  switch (dtype) {
    case DType::bf16:
      half = encode_bf16(value);
      std::memcpy(at, &half, sizeof half);
      return;
    case DType::fp16:
      half = encode_fp16(value);
      std::memcpy(at, &half, sizeof half);
      return;
    case DType::fp32:
      std::memcpy(at, &single, sizeof single);
      return;
    default:
      throw Error(ErrorCode::internal,
                  fmt::format("the reference does not write {} as a number", to_string(dtype)));
  }
}

float MatrixView::at(std::int64_t r, std::int64_t c) const {
  return element(dtype, data, transposed ? c * rows + r : r * cols + c);
}

void MatrixView::load_rows(std::int64_t first, std::int64_t count, float* out) const {
  // Each loop walks memory in its own order.
  if (!transposed) {
    for (std::int64_t i = 0; i < count * cols; ++i) out[i] = element(dtype, data, first * cols + i);
    return;
  }
  for (std::int64_t c = 0; c < cols; ++c) {
    for (std::int64_t r = 0; r < count; ++r) out[r * cols + c] = element(dtype, data, c * rows + first + r);
  }
}

std::int64_t extent(const problem::Shape& shape, std::size_t from_the_end) {
  return shape.at(shape.size() - 1 - from_the_end).max;
}

std::int64_t leading_count(const problem::Shape& shape) { return shape.size() == 3 ? shape[0].max : 1; }

MatrixView matrix_of(const HostTensor& tensor, std::int64_t index, std::int64_t rows, std::int64_t cols,
                     bool transposed) {
  const auto bytes = static_cast<std::size_t>(rows * cols) * size_of(tensor.dtype);
  return {tensor.dtype, tensor.bytes.data() + static_cast<std::size_t>(index) * bytes, rows, cols,
          transposed};
}

HostTensor make_tensor(DType dtype, std::vector<std::int64_t> shape) {
  HostTensor tensor;
  tensor.dtype = dtype;
  tensor.shape = std::move(shape);
  tensor.bytes.assign(static_cast<std::size_t>(tensor.elements()) * size_of(dtype), 0);
  return tensor;
}

std::vector<std::int64_t> read_offsets(const HostTensor& tensor, std::int64_t limit, std::int64_t alignment) {
  std::vector<std::int64_t> ends;
  std::int64_t previous = 0;
  for (std::int64_t g = 0; g < tensor.elements(); ++g) {
    const std::int64_t end = read_as<std::int32_t>(tensor, g);
    const auto refuse = [&](const std::string& expected) {
      throw Error(ErrorCode::invalid_argument, fmt::format("offsets[{}] = {}: expected {}", g, end, expected),
                  "offsets");
    };
    if (end < previous) refuse(fmt::format("at least {}, where the group before it ends", previous));
    if (end > limit) refuse(fmt::format("at most {}", limit));
    if ((end - previous) % alignment != 0) {
      refuse(fmt::format("a group of a multiple of {}, got {}", alignment, end - previous));
    }
    ends.push_back(end);
    previous = end;
  }
  return ends;
}

}  // namespace mxjit::reference
