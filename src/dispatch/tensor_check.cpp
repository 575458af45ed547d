#include "dispatch/tensor_check.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <span>

#include "mxjit/error.hpp"

namespace mxjit::dispatch {

void refuse(const char* argument, const std::string& expected, const std::string& came) {
  throw Error(ErrorCode::invalid_argument, fmt::format("{}: expected {}, got {}", argument, expected, came),
              argument);
}

std::string shape_text(const Extents& shape, int rank) {
  return fmt::format("({})", fmt::join(std::span(shape).first(static_cast<std::size_t>(rank)), ", "));
}

bool overlap(const Span& a, const Span& b) {
  if (a.begin == a.end || b.begin == b.end) return false;
  if (a.end <= b.begin || b.end <= a.begin) return false;
  // Columns of one pitched matrix share a range of addresses and no byte.
  if (a.pitch_bytes == b.pitch_bytes && a.rows > 1 && b.rows > 1) {
    const std::uint64_t pitch = a.pitch_bytes;
    const std::uint64_t shift =
        b.begin >= a.begin ? (b.begin - a.begin) % pitch : (pitch - (a.begin - b.begin) % pitch) % pitch;
    if (shift >= a.row_bytes && shift + b.row_bytes <= pitch) return false;
  }
  return true;
}

Span check_memory(const char* name, const Tensor& tensor) {
  const std::int64_t columns = tensor.shape[static_cast<std::size_t>(tensor.rank) - 1];
  if (tensor.pitch != 0 && tensor.pitch < columns)
    refuse(name, fmt::format("a pitch of 0 (packed) or at least the row extent {}", columns),
           fmt::format("pitch {}", tensor.pitch));
  Checked checked;
  std::int64_t rows = 1;
  for (int i = 0; i + 1 < tensor.rank; ++i)
    rows = checked.times(rows, tensor.shape[static_cast<std::size_t>(i)]);
  const auto element = static_cast<std::int64_t>(size_of_element(tensor.dtype));
  const std::int64_t row_bytes = checked.times(columns, element);
  const std::int64_t pitch_bytes = checked.times(row_pitch(tensor), element);
  const std::int64_t size = checked.times(rows, pitch_bytes);
  if (!checked.ok) refuse(name, "a size that fits 63 bits", shape_text(tensor.shape, tensor.rank));
  Span span{.name = name,
            .row_bytes = static_cast<std::uint64_t>(row_bytes),
            .pitch_bytes = static_cast<std::uint64_t>(pitch_bytes),
            .rows = static_cast<std::uint64_t>(rows)};
  if (rows == 0 || columns == 0) return span;
  if (tensor.data == nullptr)
    refuse(name, fmt::format("a device pointer for {}", shape_text(tensor.shape, tensor.rank)),
           "a null pointer");
  span.begin = reinterpret_cast<std::uintptr_t>(tensor.data);
  if (span.begin % static_cast<std::uintptr_t>(element) != 0)
    refuse(name, fmt::format("a base that is a multiple of the element's {} bytes", element),
           fmt::format("address {:#x}", span.begin));
  // The last row ends after its own elements, not after a pitch.
  const auto bytes = static_cast<std::uint64_t>(size - pitch_bytes + row_bytes);
  if (span.begin > std::numeric_limits<std::uintptr_t>::max() - bytes)
    refuse(name, "a tensor inside the address space",
           fmt::format("address {:#x}, {} bytes", span.begin, bytes));
  span.end = span.begin + bytes;
  return span;
}

void check_shape(const char* name, const Tensor& tensor, const Extents& shape, int rank) {
  bool same = tensor.rank == rank;
  for (int i = 0; same && i < rank; ++i)
    same = tensor.shape[static_cast<std::size_t>(i)] == shape[static_cast<std::size_t>(i)];
  if (same) return;
  const bool printable = tensor.rank >= 0 && tensor.rank <= 4;
  refuse(name, "shape " + shape_text(shape, rank),
         printable ? shape_text(tensor.shape, tensor.rank) : fmt::format("rank {}", tensor.rank));
}

Span check_words(const char* name, const Tensor& tensor, std::int64_t extent) {
  if (tensor.dtype != DType::i32) refuse(name, "dtype i32", std::string(to_string(tensor.dtype)));
  check_shape(name, tensor, {extent}, 1);
  return check_memory(name, tensor);
}

ScaleShape scale_shape(const char* name, const Block& block, ScaleLayout layout, std::int64_t experts,
                       std::int64_t across, std::int64_t along) {
  const bool batched = experts >= 0;
  ScaleShape scales;
  const auto append = [&](std::int64_t extent) {
    scales.shape[static_cast<std::size_t>(scales.rank)] = extent;
    ++scales.rank;
  };
  if (block.kind == Block::Kind::tensor) {
    append(1);
    return scales;
  }
  Checked checked;
  if (layout == ScaleLayout::blocked) {
    const std::int64_t one =
        checked.times(checked.round_up(across, 128), checked.round_up(ceil_div(along, block.cols), 4));
    append(checked.times(batched ? experts : 1, one));
    if (!checked.ok)
      refuse(name, "a size that fits 63 bits", fmt::format("scales of {} x {}", across, along));
    return scales;
  }
  if (batched) append(experts);
  if (block.kind == Block::Kind::row) {
    append(across);
    return scales;
  }
  if (block.kind == Block::Kind::k) {
    append(along);
    return scales;
  }
  const std::int64_t rows = ceil_div(across, block.rows);
  const std::int64_t columns = ceil_div(along, block.cols);
  if (layout == ScaleLayout::mn_major) {
    append(columns);
    append(checked.round_up(rows, 4));
    if (!checked.ok)
      refuse(name, "a size that fits 63 bits", fmt::format("scales of {} x {}", across, along));
    return scales;
  }
  append(rows);
  append(columns);
  return scales;
}

Span check_scales(const char* name, const Tensor& tensor, Scaling scaling, const ScaleShape& expected) {
  const bool mx = scaling == Scaling::mx;
  const bool right =
      mx ? tensor.dtype == DType::e8m0 || tensor.dtype == DType::u8 : tensor.dtype == DType::fp32;
  if (!right) refuse(name, mx ? "dtype e8m0 or u8" : "dtype fp32", std::string(to_string(tensor.dtype)));
  check_shape(name, tensor, expected.shape, expected.rank);
  if (tensor.pitch != 0 && tensor.pitch != tensor.shape[static_cast<std::size_t>(tensor.rank) - 1])
    refuse(name, "packed scales (pitch 0)", fmt::format("pitch {}", tensor.pitch));
  return check_memory(name, tensor);
}

void check_pointer(const driver::DeviceContext& device, const char* name, const Tensor& tensor) {
  // A tensor without elements may be anywhere.
  const auto end = tensor.shape.begin() + tensor.rank;
  if (tensor.data == nullptr || std::find(tensor.shape.begin(), end, 0) != end) return;
  int ordinal = -1;
  const CUresult result = device.api().pointer_get_attribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                                                             reinterpret_cast<CUdeviceptr>(tensor.data));
  const std::string expected = fmt::format("memory of device {}", device.device());
  const auto address = reinterpret_cast<std::uintptr_t>(tensor.data);
  if (result != CUDA_SUCCESS)
    refuse(name, expected,
           fmt::format("address {:#x}, which the driver does not know as device memory", address));
  if (ordinal != device.device())
    refuse(name, expected, fmt::format("address {:#x} of device {}", address, ordinal));
}

}  // namespace mxjit::dispatch
