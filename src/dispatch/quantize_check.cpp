#include "dispatch/quantize_check.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <limits>
#include <span>
#include <string>

#include "mxjit/error.hpp"

namespace mxjit::dispatch {
namespace {

using Extents = std::array<std::int64_t, 4>;

[[noreturn, gnu::cold]] void refuse(const char* argument, const std::string& expected,
                                    const std::string& came) {
  throw Error(ErrorCode::invalid_argument, fmt::format("{}: expected {}, got {}", argument, expected, came),
              argument);
}

[[gnu::cold]] std::string shape_text(const Extents& shape, int rank) {
  return fmt::format("({})", fmt::join(std::span(shape).first(static_cast<std::size_t>(rank)), ", "));
}

constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

// Products of extents; `ok` turns false on overflow and stays so.
struct Checked {
  bool ok = true;
  std::int64_t times(std::int64_t a, std::int64_t b) {
    std::int64_t product = 0;
    if (__builtin_mul_overflow(a, b, &product)) ok = false;
    return ok ? product : 0;
  }
  std::int64_t round_up(std::int64_t a, std::int64_t b) { return times(ceil_div(a, b), b); }
};

// The bytes of a tensor: `rows` rows of `row_bytes`, `pitch_bytes` apart.
struct Span {
  const char* name = nullptr;
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;  // equal to begin where there are no bytes
  std::uint64_t row_bytes = 0;
  std::uint64_t pitch_bytes = 0;
  std::uint64_t rows = 0;
};

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

// Checks pitch, size, pointer and element alignment of a tensor whose dtype and shape are right.
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
  const std::uint64_t bytes = static_cast<std::uint64_t>(size - pitch_bytes + row_bytes);
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

Span check_data(const char* name, const Tensor& tensor, DType format, const Extents& shape, int rank) {
  if (tensor.dtype != format)
    refuse(name, fmt::format("dtype {}, the options' format", to_string(format)),
           std::string(to_string(tensor.dtype)));
  check_shape(name, tensor, shape, rank);
  return check_memory(name, tensor);
}

struct ScaleShape {
  Extents shape{};
  int rank = 0;
};

// The scales of `across` x `along` elements, blocks lying along the second; `experts` < 0: a 2D problem.
// `col`: groups cut `along`; otherwise they cut `across`.
ScaleShape scale_shape(const char* name, const QuantizeOptions& options, std::int64_t experts,
                       std::int64_t across, std::int64_t along, bool col) {
  const Block& block = options.block;
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
  if (options.scale_layout == ScaleLayout::blocked) {
    const std::int64_t groups = options.groups.count;
    std::int64_t rows = checked.round_up(across, 128);
    std::int64_t columns = checked.round_up(ceil_div(along, block.cols), 4);
    if (groups > 0 && col) columns = ceil_div(along, block.cols) + 4 * groups;
    if (groups > 0 && !col && options.groups.alignment < 128) rows = across + 128 * groups;
    append(checked.times(batched ? experts : 1, checked.times(rows, columns)));
    if (!checked.ok)
      refuse(name, "a size that fits 63 bits", fmt::format("scales of {} x {}", across, along));
    return scales;
  }
  if (batched) append(experts);
  if (block.kind == Block::Kind::row) {
    append(across);
    return scales;
  }
  const std::int64_t rows = ceil_div(across, block.rows);
  const std::int64_t columns = ceil_div(along, block.cols);
  if (options.scale_layout == ScaleLayout::mn_major) {
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

Span check_scales(const char* name, const Tensor& tensor, const QuantizeOptions& options,
                  const ScaleShape& expected) {
  const bool mx = options.scaling == Scaling::mx;
  const bool right =
      mx ? tensor.dtype == DType::e8m0 || tensor.dtype == DType::u8 : tensor.dtype == DType::fp32;
  if (!right) refuse(name, mx ? "dtype e8m0 or u8" : "dtype fp32", std::string(to_string(tensor.dtype)));
  check_shape(name, tensor, expected.shape, expected.rank);
  if (tensor.pitch != 0 && tensor.pitch != tensor.shape[static_cast<std::size_t>(tensor.rank) - 1])
    refuse(name, "packed scales (pitch 0)", fmt::format("pitch {}", tensor.pitch));
  return check_memory(name, tensor);
}

void check_absent(const char* name, const Tensor& tensor, const char* axis) {
  if (tensor.data != nullptr)
    refuse(name, fmt::format("no tensor: the options do not ask for axis {}", axis),
           fmt::format("address {:#x}", reinterpret_cast<std::uintptr_t>(tensor.data)));
}

bool is_extents(const Block& block, int rows, int cols) {
  return block.kind == Block::Kind::extents && block.rows == rows && block.cols == cols;
}

std::string block_text(const Block& block) {
  switch (block.kind) {
    case Block::Kind::row:
      return "row";
    case Block::Kind::tensor:
      return "tensor";
    case Block::Kind::extents:
      break;
  }
  return fmt::format("{{{}, {}}}", block.rows, block.cols);
}

template <typename Enum>
std::string name_of(Enum value) {
  return std::string(to_string(value));
}

void check_groups(const QuantizeOptions& options) {
  const Groups& groups = options.groups;
  if (groups.count == 0) return;
  constexpr int most = 1024;
  if (groups.count < 0 || groups.count > most)
    refuse("options.groups.count", fmt::format("0 to {}", most), fmt::to_string(groups.count));
  if (groups.alignment != 128 && groups.alignment != 32 && groups.alignment != 1)
    refuse("options.groups.alignment", "128, 32 or 1", fmt::to_string(groups.alignment));
  if (options.transposed_input) refuse("options.groups", "no groups with transposed_input", "groups");
  if (options.block.kind != Block::Kind::extents) return;
  const int along_m =
      std::max(options.axes.row ? options.block.rows : 1, options.axes.col ? options.block.cols : 1);
  if (groups.alignment % along_m != 0)
    refuse("options.groups.alignment", fmt::format("a multiple of the block's extent along M, {}", along_m),
           fmt::to_string(groups.alignment));
}

// The ends and the status: a vector of int32 each.
Span check_words(const char* name, const Tensor& tensor, std::int64_t extent) {
  if (tensor.dtype != DType::i32) refuse(name, "dtype i32", std::string(to_string(tensor.dtype)));
  check_shape(name, tensor, {extent}, 1);
  return check_memory(name, tensor);
}

}  // namespace

void check_options(const QuantizeOptions& options) {
  const Block& block = options.block;
  const bool mx = options.scaling == Scaling::mx;
  if (!mx && options.scaling != Scaling::fp32)
    refuse("options.scaling", "mx or fp32", fmt::format("{}", static_cast<int>(options.scaling)));
  if (options.format != DType::e4m3 && options.format != DType::e5m2)
    refuse("options.format", "e4m3 or e5m2", name_of(options.format));
  if (mx && !(is_extents(block, 1, 32) || is_extents(block, 1, 128) || is_extents(block, 32, 32) ||
              is_extents(block, 128, 128)))
    refuse("options.block", "{1, 32}, {1, 128}, {32, 32} or {128, 128} with scaling mx", block_text(block));
  const bool fp32_extents = is_extents(block, 1, 128) || is_extents(block, 128, 128);
  if (!mx && !(fp32_extents || block.kind == Block::Kind::row || block.kind == Block::Kind::tensor))
    refuse("options.block", "{1, 128}, {128, 128}, row or tensor with scaling fp32", block_text(block));
  const Rounding rounding = options.rounding;
  if (mx && rounding != Rounding::rceil && rounding != Rounding::floor && rounding != Rounding::ceil &&
      rounding != Rounding::even)
    refuse("options.rounding", "rceil, floor, ceil or even with scaling mx", name_of(rounding));
  if (!mx && rounding != Rounding::none && rounding != Rounding::pow2)
    refuse("options.rounding", "none or pow2 with scaling fp32", name_of(rounding));
  const ScaleLayout layout = options.scale_layout;
  if (mx && layout != ScaleLayout::plain && layout != ScaleLayout::blocked)
    refuse("options.scale_layout", "plain or blocked with scaling mx", name_of(layout));
  if (!mx && layout != ScaleLayout::plain && !(layout == ScaleLayout::mn_major && fp32_extents))
    refuse("options.scale_layout", "plain, or mn_major with blocks of 128, with scaling fp32",
           name_of(layout));
  if (!options.axes.row && !options.axes.col) refuse("options.axes", "row, col or both", "none");
  check_groups(options);
}

void check_quantize(const QuantizeOptions& options, const QuantizeArgs& args) {
  const Tensor& x = args.x;
  if (x.dtype != DType::bf16 && x.dtype != DType::fp16 && x.dtype != DType::fp32)
    refuse("x", "dtype bf16, fp16 or fp32", std::string(to_string(x.dtype)));
  if (x.rank != 2 && x.rank != 3)
    refuse("x", "rank 2 or 3, (M, N) or (E, M, N)", fmt::format("rank {}", x.rank));
  for (int i = 0; i < x.rank; ++i)
    if (x.shape[static_cast<std::size_t>(i)] < 0)
      refuse("x", "extents of at least 0", shape_text(x.shape, x.rank));

  const bool batched = x.rank == 3;
  const std::size_t last = static_cast<std::size_t>(x.rank) - 1;
  const std::int64_t experts = batched ? x.shape[0] : -1;
  const std::int64_t m = x.shape[options.transposed_input ? last : last - 1];
  const std::int64_t n = x.shape[options.transposed_input ? last - 1 : last];
  Extents shape = x.shape;  // of q_row, and below of q_col

  std::array<Span, 7> spans;
  std::size_t count = 0;
  spans[count++] = check_memory("x", x);
  if (options.axes.row) {
    shape[last - 1] = m;
    shape[last] = n;
    spans[count++] = check_data("q_row", args.q_row, options.format, shape, x.rank);
    spans[count++] =
        check_scales("s_row", args.s_row, options, scale_shape("s_row", options, experts, m, n, false));
  } else {
    check_absent("q_row", args.q_row, "row");
    check_absent("s_row", args.s_row, "row");
  }
  if (options.axes.col) {
    shape[last - 1] = n;
    shape[last] = m;
    spans[count++] = check_data("q_col", args.q_col, options.format, shape, x.rank);
    spans[count++] =
        check_scales("s_col", args.s_col, options, scale_shape("s_col", options, experts, n, m, true));
  } else {
    check_absent("q_col", args.q_col, "col");
    check_absent("s_col", args.s_col, "col");
  }

  if (options.groups.count > 0) {
    if (batched) refuse("x", "rank 2 with groups", "rank 3");
    if (m > std::numeric_limits<std::int32_t>::max())
      refuse("x", "rows that int32 offsets can count", fmt::format("{} rows", m));
    spans[count++] = check_words("offsets", args.offsets, options.groups.count);
    if (args.status.data != nullptr) spans[count++] = check_words("status", args.status, 4);
  }

  for (std::size_t later = 1; later < count; ++later)
    for (std::size_t earlier = 0; earlier < later; ++earlier)
      if (overlap(spans[earlier], spans[later]))
        refuse(spans[later].name, fmt::format("memory apart from {}", spans[earlier].name),
               fmt::format("bytes {:#x} to {:#x}, which overlap {:#x} to {:#x}", spans[later].begin,
                           spans[later].end, spans[earlier].begin, spans[earlier].end));
}

void check_pointers(const driver::DeviceContext& device, const QuantizeOptions& options,
                    const QuantizeArgs& args) {
  const auto look = [&](const char* name, const Tensor& tensor) {
    if (tensor.data == nullptr) return;  // a tensor without elements
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
  };
  look("x", args.x);
  if (options.axes.row) {
    look("q_row", args.q_row);
    look("s_row", args.s_row);
  }
  if (options.axes.col) {
    look("q_col", args.q_col);
    look("s_col", args.s_col);
  }
  if (options.groups.count > 0) {
    look("offsets", args.offsets);
    look("status", args.status);
  }
}

}  // namespace mxjit::dispatch
