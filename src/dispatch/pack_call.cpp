#include "dispatch/pack_call.hpp"

#include <fmt/format.h>

#include <string>

#include "dispatch/problem_of_call.hpp"
#include "scales/params.cuh"

namespace mxjit::dispatch {
namespace {

void check_codes(const char* name, const Tensor& tensor) {
  if (tensor.dtype != DType::e8m0 && tensor.dtype != DType::u8)
    refuse(name, "dtype e8m0 or u8", std::string(to_string(tensor.dtype)));
}

}  // namespace

void PackCall::check() const {
  const auto& [s, blocked, offsets, status] = args_;
  const Placement placement = options_.placement;
  if (placement != Placement::dense && placement != Placement::per_expert && !grouped())
    refuse("options.placement", "dense, m_groups, k_groups or per_expert",
           fmt::format("{}", static_cast<int>(placement)));
  if (grouped()) check_group_count("options.groups", options_.groups);
  if (!grouped() && options_.groups != 0)
    refuse("options.groups", fmt::format("0 with placement {}", to_string(placement)),
           fmt::to_string(options_.groups));
  check_codes("s", s);
  const int rank = placement == Placement::per_expert ? 3 : 2;
  check_extents("s", s, rank, rank);
  const std::int64_t experts = rank == 3 ? s.shape[0] : 1;
  const auto last = static_cast<std::size_t>(rank) - 1;
  const std::int64_t rows = s.shape[last - 1], columns = s.shape[last], groups = options_.groups;
  if (grouped()) check_countable("s", placement == Placement::m_groups ? rows : columns);

  std::array<Span, 4> spans;
  spans[0] = check_memory("s", s);
  Checked checked;
  const std::int64_t tall =
      placement == Placement::m_groups ? rows + 128 * groups : checked.round_up(rows, 128);
  const std::int64_t wide =
      placement == Placement::k_groups ? columns + 4 * groups : checked.round_up(columns, 4);
  const std::int64_t bytes = checked.times(experts, checked.times(tall, wide));
  if (!checked.ok) refuse("s", "a blocked size that fits 63 bits", shape_text(s.shape, s.rank));
  check_codes("s_blocked", blocked);
  check_shape("s_blocked", blocked, {bytes}, 1);
  spans[1] = check_memory("s_blocked", blocked);
  if (grouped()) {
    spans[2] = check_words("offsets", offsets, groups);
    if (status.data != nullptr) spans[3] = check_words("status", status, 4);
  }
  check_overlaps(tensors_, spans);
}

bool PackCall::has_work() const noexcept {
  if (!unpack_) return args_.s_blocked.shape[0] > 0;
  for (int i = 0; i < args_.s.rank; ++i)
    if (args_.s.shape[static_cast<std::size_t>(i)] == 0) return false;
  return true;
}

OpKey PackCall::key() const noexcept {
  // One matrix and one for each expert share a kernel.
  const Placement placement =
      options_.placement == Placement::per_expert ? Placement::dense : options_.placement;
  return {{'s', static_cast<std::uint8_t>(unpack_), static_cast<std::uint8_t>(placement)}};
}

problem::Problem PackCall::problem() const {
  const problem::TensorSpec s = spec_of(args_.s);
  problem::PackScales op;
  op.unpack = unpack_;
  op.shape = s.shape;
  op.pitch = {.ld = s.ld, .align = s.align};
  op.placement = options_.placement;
  if (grouped()) op.groups = options_.groups;
  return {.name = {}, .op = op};
}

void PackCall::launch(const OpPlan& plan, CUstream stream) const {
  const Tensor& s = args_.s;
  const auto last = static_cast<std::size_t>(s.rank) - 1;
  PackScalesParams params{};
  params.from = static_cast<const u8*>(unpack_ ? args_.s_blocked.data : s.data);
  params.to = static_cast<u8*>(unpack_ ? s.data : args_.s_blocked.data);
  params.rows = s.shape[last - 1];
  params.columns = s.shape[last];
  params.pitch = row_pitch(s);
  params.blocked_bytes = args_.s_blocked.shape[0];
  params.tiles = ceil_div(params.blocked_bytes, 512);
  if (grouped())
    params.groups = {
        .ends = static_cast<const i32*>(args_.offsets.data),
        .status = static_cast<i32*>(args_.status.data),
        .limit = options_.placement == Placement::m_groups ? params.rows : params.columns,
        .count = options_.groups,
        .alignment = 1,
    };
  const std::int64_t blocks = ceil_div(params.tiles, 8);
  plan.launch(grouped() ? plan.filling(blocks) : blocks, &params, stream);
}

}  // namespace mxjit::dispatch
