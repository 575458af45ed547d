// Ops "pack_scales" and "unpack_scales": codes between the plain matrix and the blocked layout.
#include "reference/layout.hpp"
#include "reference/matrix.hpp"
#include "reference/ops.hpp"

namespace mxjit::reference {

void pack_scales(const problem::PackScales& op, const TensorMap& inputs, TensorMap& outputs) {
  const std::int64_t experts = leading_count(op.shape);
  const std::int64_t rows = extent(op.shape, 1);
  const std::int64_t cols = extent(op.shape, 0);
  const std::vector<std::uint8_t>& from = inputs.at(op.unpack ? "s_blocked" : "s").bytes;
  std::vector<std::uint8_t>& to = outputs.at(op.unpack ? "s" : "s_blocked").bytes;
  const auto move = [&](std::int64_t index, std::int64_t byte) {
    if (op.unpack) {
      to[static_cast<std::size_t>(index)] = from[static_cast<std::size_t>(byte)];
    } else {
      to[static_cast<std::size_t>(byte)] = from[static_cast<std::size_t>(index)];
    }
  };
  switch (op.placement) {
    case problem::Placement::dense:
      place_dense(rows, cols, move);
      return;
    case problem::Placement::per_expert:
      place_per_expert(experts, rows, cols, move);
      return;
    case problem::Placement::m_groups:
      place_m_groups(read_offsets(inputs.at("offsets"), rows, 1), cols, move);
      return;
    case problem::Placement::k_groups:
      place_k_groups(read_offsets(inputs.at("offsets"), cols, 1), rows, cols, move);
      return;
  }
}

}  // namespace mxjit::reference
