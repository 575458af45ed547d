// Reading the matrices of a problem as fp32, and the small pieces of host tensors that every op shares.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "problem/problem.hpp"
#include "safetensors/host_tensor.hpp"

namespace mxjit::reference {

/// One matrix of rows x cols elements in host memory, either row-major or stored as its transpose.
struct MatrixView {
  DType dtype = DType::fp32;
  const std::uint8_t* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  bool transposed = false;  // memory is (cols, rows) row-major

  MatrixView transpose() const { return {dtype, data, cols, rows, !transposed}; }
  /// Element (r, c) widened to fp32.
  float at(std::int64_t r, std::int64_t c) const;
  /// Rows [first, first + count) widened to fp32, packed, into `out`.
  void load_rows(std::int64_t first, std::int64_t count, float* out) const;
};

/// Element `index` of a packed tensor, widened to fp32 (exact for every float format but fp64).
float element(DType dtype, const std::uint8_t* data, std::int64_t index);
/// Rounds once to `dtype` (fp32, bf16, fp16) and stores.
void store(DType dtype, std::uint8_t* data, std::int64_t index, double value);

/// Tensors whose last two axes are a matrix: how many there are, and the view of one of them.
std::int64_t leading_count(const problem::Shape& shape);
std::int64_t extent(const problem::Shape& shape, std::size_t from_the_end);
MatrixView matrix_of(const HostTensor& tensor, std::int64_t index, std::int64_t rows, std::int64_t cols,
                     bool transposed);

/// Typed element of a packed tensor, and its counterpart.
template <typename T>
T read_as(const HostTensor& tensor, std::int64_t index) {
  T value;
  std::memcpy(&value, tensor.bytes.data() + static_cast<std::size_t>(index) * sizeof(T), sizeof(T));
  return value;
}
template <typename T>
void write_as(HostTensor& tensor, std::int64_t index, T value) {
  std::memcpy(tensor.bytes.data() + static_cast<std::size_t>(index) * sizeof(T), &value, sizeof(T));
}

/// A zeroed tensor.
HostTensor make_tensor(DType dtype, std::vector<std::int64_t> shape);

/// Group ends as they stand in `tensor` (int32), checked: they never fall, stay in [0, limit] and every group
/// is a multiple of `alignment`. Throws Error(invalid_argument) naming offsets.
std::vector<std::int64_t> read_offsets(const HostTensor& tensor, std::int64_t limit, std::int64_t alignment);

}  // namespace mxjit::reference
