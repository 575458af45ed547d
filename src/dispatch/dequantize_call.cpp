#include "dispatch/dequantize_call.hpp"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "dispatch/problem_of_call.hpp"
#include "dispatch/quantize_check.hpp"

namespace mxjit::dispatch {
namespace {

std::int64_t round_up(std::int64_t value, std::int64_t unit) { return ceil_div(value, unit) * unit; }

bool aligned(const void* base, std::int64_t pitch_bytes, std::uintptr_t to) {
  return ((reinterpret_cast<std::uintptr_t>(base) | static_cast<std::uintptr_t>(pitch_bytes)) & (to - 1)) ==
         0;
}

bool has_groups(const DequantizeOptions& options) { return options.groups.count > 0; }

// The quantization that is undone, whose options are checked as its own are.
QuantizeOptions quantization(const DequantizeOptions& options, DType format) {
  return {.format = format,
          .scaling = options.scaling,
          .block = options.block,
          .rounding = options.scaling == Scaling::mx ? Rounding::rceil : Rounding::none,
          .scale_layout = options.scale_layout,
          .axes = {.row = !options.axis_col, .col = options.axis_col},
          .groups = options.groups};
}

}  // namespace

configure::DequantizeTraits DequantizeCall::traits() const noexcept {
  configure::DequantizeTraits traits{
      .format = args_.q.dtype,
      .output = args_.x.dtype,
      .mx = options_.scaling == Scaling::mx,
      .axis_col = options_.axis_col,
      .place = configure::scale_place(options_.block, options_.scale_layout, options_.axis_col,
                                      has_groups(options_) ? options_.groups.alignment : 0)};
  if (options_.block.kind == Block::Kind::extents) {
    traits.block_rows = static_cast<std::uint8_t>(options_.block.rows);
    traits.block_cols = static_cast<std::uint8_t>(options_.block.cols);
  }
  return traits;
}

OpKey DequantizeCall::key() const noexcept {
  const configure::DequantizeTraits of = traits();
  return {{'d', static_cast<std::uint8_t>(of.format), static_cast<std::uint8_t>(of.output),
           static_cast<std::uint8_t>(of.mx), static_cast<std::uint8_t>(of.axis_col),
           static_cast<std::uint8_t>(of.place), of.block_rows, of.block_cols}};
}

ScaleShape DequantizeCall::scales(std::int64_t experts, std::int64_t across, std::int64_t along) const {
  const std::int64_t groups = options_.groups.count;
  const std::int64_t blocks = ceil_div(along, options_.block.cols);
  Checked checked;
  ScaleShape shape;
  switch (traits().place) {
    case ScalePlace::row_of_group:
      return {.shape = {groups, across}, .rank = 2};
    case ScalePlace::m_groups:
      shape = {.shape = {checked.times(across + 128 * groups, checked.round_up(blocks, 4))}, .rank = 1};
      break;
    case ScalePlace::k_groups:
      shape = {.shape = {checked.times(checked.round_up(across, 128), blocks + 4 * groups)}, .rank = 1};
      break;
    default:
      return scale_shape("s", options_.block, options_.scale_layout, experts, across, along);
  }
  if (!checked.ok) refuse("s", "a size that fits 63 bits", fmt::format("scales of {} x {}", across, along));
  return shape;
}

void DequantizeCall::check() const {
  const auto& [q, s, x, offsets, status] = args_;
  if (q.dtype != DType::e4m3 && q.dtype != DType::e5m2)
    refuse("q", "dtype e4m3 or e5m2", std::string(to_string(q.dtype)));
  check_options(quantization(options_, q.dtype));
  if (x.dtype != DType::bf16 && x.dtype != DType::fp16 && x.dtype != DType::fp32)
    refuse("x", "dtype bf16, fp16 or fp32", std::string(to_string(x.dtype)));
  check_extents("x", x, 2, 3);
  const auto last = static_cast<std::size_t>(x.rank) - 1;
  const std::int64_t m = x.shape[last - 1];
  Extents stored = x.shape;
  if (options_.axis_col) std::swap(stored[last - 1], stored[last]);

  std::array<Span, 5> spans;
  check_shape("q", q, stored, x.rank);
  spans[0] = check_memory("q", q);
  spans[1] = check_scales("s", s, options_.scaling,
                          scales(x.rank == 3 ? x.shape[0] : -1, stored[last - 1], stored[last]));
  spans[2] = check_memory("x", x);
  if (has_groups(options_)) {
    if (x.rank == 3) refuse("x", "rank 2 with groups", "rank 3");
    check_countable("x", m);
    spans[3] = check_words("offsets", offsets, options_.groups.count);
    if (status.data != nullptr) spans[4] = check_words("status", status, 4);
  }
  check_overlaps(tensors_, spans);
}

bool DequantizeCall::has_work() const noexcept {
  for (int i = 0; i < args_.x.rank; ++i)
    if (args_.x.shape[static_cast<std::size_t>(i)] == 0) return false;
  return true;
}

problem::Problem DequantizeCall::problem() const {
  problem::Dequantize op;
  op.q = spec_of(args_.q, options_.axis_col);
  op.scaling = options_.scaling;
  op.block = options_.block;
  op.scale_layout = options_.scale_layout;
  op.axis_col = options_.axis_col;
  if (has_groups(options_))
    op.groups = problem::MGroups{.count = options_.groups.count, .alignment = options_.groups.alignment};
  op.output = args_.x.dtype;
  const problem::TensorSpec x = spec_of(args_.x);
  op.output_pitch = {.ld = x.ld, .align = x.align};
  return {.name = {}, .op = op};
}

void DequantizeCall::launch(const OpPlan& plan, CUstream stream) const {
  const Tensor& q = args_.q;
  const configure::DequantizeTraits of = traits();
  const auto last = static_cast<std::size_t>(q.rank) - 1;
  const std::int64_t experts = q.rank == 3 ? q.shape[0] : 1;
  DequantizeParams params{};
  params.q = static_cast<const u8*>(q.data);
  params.s = args_.s.data;
  params.x = args_.x.data;
  params.rows = q.shape[last - 1];
  params.columns = q.shape[last];
  params.ld_q = row_pitch(q);
  params.ld_x = row_pitch(args_.x);
  const std::int64_t down = ceil_div(params.rows, of.block_rows);
  const std::int64_t across = ceil_div(params.columns, of.block_cols);
  switch (of.place) {
    case ScalePlace::row:
      params.expert_s = params.rows;
      break;
    case ScalePlace::plain:
      params.ld_s = across;
      params.expert_s = down * across;
      break;
    case ScalePlace::mn_major:
      params.ld_s = round_up(down, 4);
      params.expert_s = across * params.ld_s;
      break;
    case ScalePlace::blocked:
      params.expert_s = round_up(params.rows, 128) * round_up(across, 4);
      break;
    default:  // one expert
      break;
  }
  const bool grouped = of.place == ScalePlace::m_groups || of.place == ScalePlace::k_groups ||
                       of.place == ScalePlace::row_of_group;
  if (grouped)
    params.groups = {.ends = static_cast<const i32*>(args_.offsets.data),
                     .status = static_cast<i32*>(args_.status.data),
                     .limit = args_.x.shape[last - 1],
                     .count = options_.groups.count,
                     .alignment = options_.groups.alignment};
  const DequantizeTile tile = dequantize_tile(of.axis_col);
  params.tiles_down = static_cast<u32>(ceil_div(params.rows, tile.rows));
  params.tiles_across = static_cast<u32>(ceil_div(params.columns, tile.columns));
  params.tiles = static_cast<u64>(experts) * params.tiles_down * params.tiles_across;
  const auto element = static_cast<std::int64_t>(size_of_element(of.output));
  params.wide = aligned(q.data, params.ld_q, 8) && aligned(args_.x.data, params.ld_x * element, 16) ? 1 : 0;
  const auto blocks = static_cast<std::int64_t>(params.tiles);
  plan.launch(grouped ? plan.filling(blocks) : blocks, &params, stream);
}

}  // namespace mxjit::dispatch
