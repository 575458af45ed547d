#include "dispatch/quantize_key.hpp"

#include <algorithm>

#include "dispatch/quantize_check.hpp"

namespace mxjit::dispatch {
namespace {

std::uint8_t alignment(const Tensor& tensor) noexcept {
  constexpr std::uint64_t enough = 16;  // larger alignments select nothing
  const auto base = reinterpret_cast<std::uintptr_t>(tensor.data);
  const std::uint64_t pitch = static_cast<std::uint64_t>(row_pitch(tensor)) * size_of_element(tensor.dtype);
  return static_cast<std::uint8_t>(std::countr_zero(base | pitch | enough));
}

}  // namespace

QuantizeKey quantize_key(const QuantizeOptions& options, const QuantizeArgs& args) noexcept {
  QuantizeKey key;
  key.format = static_cast<std::uint8_t>(options.format);
  key.scaling = static_cast<std::uint8_t>(options.scaling);
  key.block_kind = static_cast<std::uint8_t>(options.block.kind);
  key.rounding = static_cast<std::uint8_t>(options.rounding);
  key.scale_layout = static_cast<std::uint8_t>(options.scale_layout);
  key.axes = static_cast<std::uint8_t>((options.axes.row ? 1 : 0) | (options.axes.col ? 2 : 0));
  key.input = static_cast<std::uint8_t>(args.x.dtype);
  key.rank = static_cast<std::uint8_t>(args.x.rank);
  key.block_rows = options.block.rows;
  key.block_cols = options.block.cols;
  const std::size_t last = static_cast<std::size_t>(args.x.rank) - 1;
  const std::int64_t m = args.x.shape[last - 1];
  key.n = args.x.shape[last];
  key.experts = args.x.rank == 3 ? args.x.shape[0] : 1;
  key.m_bucket = static_cast<std::uint8_t>(m < 2 ? 0 : std::bit_width(static_cast<std::uint64_t>(m - 1)));
  key.align_x = alignment(args.x);
  // Of scales only the base matters: their rows are always packed.
  const auto scale = [](const Tensor& s) {
    return static_cast<std::uint8_t>(std::countr_zero(reinterpret_cast<std::uintptr_t>(s.data) | 16));
  };
  key.align_q_row = options.axes.row ? alignment(args.q_row) : 4;
  key.align_s_row = options.axes.row ? scale(args.s_row) : 4;
  key.align_q_col = options.axes.col ? alignment(args.q_col) : 4;
  key.align_s_col = options.axes.col ? scale(args.s_col) : 4;
  return key;
}

}  // namespace mxjit::dispatch
