#include "dispatch/quantize_check.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <string>

#include "dispatch/quantize_workspace.hpp"
#include "dispatch/tensor_check.hpp"
#include "mxjit/error.hpp"

namespace mxjit::dispatch {
namespace {

Span check_data(const char* name, const Tensor& tensor, DType dtype, const char* why, const Extents& shape,
                int rank) {
  if (tensor.dtype != dtype)
    refuse(name, fmt::format("dtype {}, {}", to_string(dtype), why), std::string(to_string(tensor.dtype)));
  check_shape(name, tensor, shape, rank);
  return check_memory(name, tensor);
}

// The scales of one axis: groups change blocked ones, whose size leaves room for each group's padding, and
// those of columns.
ScaleShape scales_of(const char* name, const QuantizeOptions& options, std::int64_t experts,
                     std::int64_t across, std::int64_t along, bool col) {
  const std::int64_t groups = options.groups.count;
  if (options.block.kind == Block::Kind::row && groups > 0 && col)
    return {.shape = {groups, across}, .rank = 2};
  const bool placed =
      options.scale_layout == ScaleLayout::blocked && groups > 0 && (col || options.groups.alignment < 128);
  if (!placed) return scale_shape(name, options.block, options.scale_layout, experts, across, along);
  const std::int64_t blocks = ceil_div(along, options.block.cols);
  Checked checked;
  const std::int64_t rows = col ? checked.round_up(across, 128) : across + 128 * groups;
  const std::int64_t columns = col ? blocks + 4 * groups : checked.round_up(blocks, 4);
  ScaleShape scales;
  scales.shape[0] = checked.times(rows, columns);
  scales.rank = 1;
  if (!checked.ok) refuse(name, "a size that fits 63 bits", fmt::format("scales of {} x {}", across, along));
  return scales;
}

void check_absent(const char* name, const Tensor& tensor, const char* what) {
  if (tensor.data != nullptr)
    refuse(name, fmt::format("no tensor: the options do not ask for {}", what),
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
    case Block::Kind::k:
      return "k";
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
  if (options.block.kind == Block::Kind::tensor)
    refuse("options.groups", "no groups with block tensor, which spans them all", "groups");
  if (options.block.kind == Block::Kind::row) return;
  const int along_m =
      std::max(options.axes.row ? options.block.rows : 1, options.axes.col ? options.block.cols : 1);
  if (groups.alignment % along_m != 0)
    refuse("options.groups.alignment", fmt::format("a multiple of the block's extent along M, {}", along_m),
           fmt::to_string(groups.alignment));
}

// Values of the launch: the cap, which only float scales have.
void check_cap(const QuantizeOptions& options, float cap) {
  if (!(cap >= 0)) refuse("amax_cap", "at least 0", fmt::to_string(cap));
  if (options.scaling == Scaling::mx && cap != 0)
    refuse("amax_cap", "0, which is none, with scaling mx", fmt::to_string(cap));
}

// Values of what comes before, where they count.
void check_pre(const QuantizeOptions& options, const QuantizeArgs& args) {
  if (options.pre == Pre::rmsnorm && !(std::isfinite(args.rms_eps) && args.rms_eps >= 0))
    refuse("rms_eps", "a finite number, at least 0", fmt::to_string(args.rms_eps));
  if (!is_swiglu(options.pre)) return;
  if (!std::isfinite(args.swiglu_alpha))
    refuse("swiglu_alpha", "a finite number", fmt::to_string(args.swiglu_alpha));
  if (args.swiglu_limit && !(std::isfinite(*args.swiglu_limit) && *args.swiglu_limit > 0))
    refuse("swiglu_limit", "a finite number above 0", fmt::to_string(*args.swiglu_limit));
}

Span check_workspace(const Tensor& tensor, std::int64_t bytes) {
  constexpr std::uintptr_t alignment = 256;
  if (tensor.rank != 1 || tensor.shape[0] < bytes)
    refuse("workspace", fmt::format("shape ({}) or more", bytes),
           tensor.rank == 0   ? "no tensor"
           : tensor.rank == 1 ? shape_text(tensor.shape, 1)
                              : fmt::format("rank {}", tensor.rank));
  if (tensor.dtype != DType::u8) refuse("workspace", "dtype u8", std::string(to_string(tensor.dtype)));
  const Span span = check_memory("workspace", tensor);
  if (span.begin % alignment != 0)
    refuse("workspace", fmt::format("a base that is a multiple of {} bytes", alignment),
           fmt::format("address {:#x}", span.begin));
  return span;
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
  if (options.pre > Pre::rmsnorm)
    refuse("options.pre", "none, swiglu, swiglu_interleaved or rmsnorm",
           fmt::format("{}", static_cast<int>(options.pre)));
  check_groups(options);
}

void check_input(const Tensor& x) {
  if (x.dtype != DType::bf16 && x.dtype != DType::fp16 && x.dtype != DType::fp32)
    refuse("x", "dtype bf16, fp16 or fp32", std::string(to_string(x.dtype)));
  if (x.rank != 2 && x.rank != 3)
    refuse("x", "rank 2 or 3, (M, N) or (E, M, N)", fmt::format("rank {}", x.rank));
  for (int i = 0; i < x.rank; ++i)
    if (x.shape[static_cast<std::size_t>(i)] < 0)
      refuse("x", "extents of at least 0", shape_text(x.shape, x.rank));
}

void check_quantize(const QuantizeOptions& options, const QuantizeArgs& args) {
  const Tensor& x = args.x;
  check_input(x);
  check_cap(options, args.amax_cap);
  check_pre(options, args);
  const bool batched = x.rank == 3;
  const std::size_t last = static_cast<std::size_t>(x.rank) - 1;
  const std::int64_t experts = batched ? x.shape[0] : -1;
  const std::int64_t m = x.shape[options.transposed_input ? last : last - 1];
  std::int64_t n = x.shape[options.transposed_input ? last - 1 : last];
  if (is_swiglu(options.pre)) {
    if (n % 2 != 0) refuse("x", "an even number of columns with SwiGLU", fmt::to_string(n));
    n /= 2;
  }
  Extents shape = x.shape;  // of q_row, and below of q_col

  std::array<Span, 10> spans;
  std::size_t count = 0;
  spans[count++] = check_memory("x", x);
  if (options.axes.row) {
    shape[last - 1] = m;
    shape[last] = n;
    spans[count++] = check_data("q_row", args.q_row, options.format, "the options' format", shape, x.rank);
    spans[count++] =
        check_scales("s_row", args.s_row, options.scaling, scales_of("s_row", options, experts, m, n, false));
  } else {
    check_absent("q_row", args.q_row, "axis row");
    check_absent("s_row", args.s_row, "axis row");
  }
  if (options.axes.col) {
    shape[last - 1] = n;
    shape[last] = m;
    spans[count++] = check_data("q_col", args.q_col, options.format, "the options' format", shape, x.rank);
    spans[count++] =
        check_scales("s_col", args.s_col, options.scaling, scales_of("s_col", options, experts, n, m, true));
  } else {
    check_absent("q_col", args.q_col, "axis col");
    check_absent("s_col", args.s_col, "axis col");
  }

  if (options.emit_high) {
    shape[last - 1] = m;
    shape[last] = n;
    spans[count++] = check_data("y", args.y, DType::bf16, "what emit_high writes", shape, x.rank);
  } else {
    check_absent("y", args.y, "emit_high");
  }
  if (options.pre == Pre::rmsnorm) {
    spans[count++] = check_data("weight", args.weight, x.dtype, "as x has", {n}, 1);
  } else {
    check_absent("weight", args.weight, "rmsnorm");
  }

  if (options.groups.count > 0) {
    if (batched) refuse("x", "rank 2 with groups", "rank 3");
    if (m > std::numeric_limits<std::int32_t>::max())
      refuse("x", "rows that int32 offsets can count", fmt::format("{} rows", m));
    spans[count++] = check_words("offsets", args.offsets, options.groups.count);
    if (args.status.data != nullptr) spans[count++] = check_words("status", args.status, 4);
  }

  if (const std::int64_t bytes = quantize_workspace(options, x).bytes(); bytes > 0)
    spans[count++] = check_workspace(args.workspace, bytes);

  for (std::size_t later = 1; later < count; ++later)
    for (std::size_t earlier = 0; earlier < later; ++earlier)
      if (overlap(spans[earlier], spans[later]))
        refuse(spans[later].name, fmt::format("memory apart from {}", spans[earlier].name),
               fmt::format("bytes {:#x} to {:#x}, which overlap {:#x} to {:#x}", spans[later].begin,
                           spans[later].end, spans[earlier].begin, spans[earlier].end));
}

void check_pointers(const driver::DeviceContext& device, const QuantizeOptions& options,
                    const QuantizeArgs& args) {
  const auto look = [&](const char* name, const Tensor& tensor) { check_pointer(device, name, tensor); };
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
  if (options.emit_high) look("y", args.y);
  if (options.pre == Pre::rmsnorm) look("weight", args.weight);
  if (quantize_workspace(options, args.x).bytes() > 0) look("workspace", args.workspace);
}

}  // namespace mxjit::dispatch
