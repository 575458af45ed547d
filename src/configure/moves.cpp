#include "configure/moves.hpp"

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "mxjit/error.hpp"

namespace mxjit::configure {
namespace {

constexpr int threads = 256;

std::string name(std::string_view enumeration, std::string_view value) {
  return fmt::format("{}::{}", enumeration, value);
}

std::string_view to_string(ScalePlace place) {
  switch (place) {
    case ScalePlace::tensor:
      return "tensor";
    case ScalePlace::row:
      return "row";
    case ScalePlace::row_of_group:
      return "row_of_group";
    case ScalePlace::plain:
      return "plain";
    case ScalePlace::mn_major:
      return "mn_major";
    case ScalePlace::blocked:
      return "blocked";
    case ScalePlace::m_groups:
      return "m_groups";
    case ScalePlace::k_groups:
      break;
  }
  return "k_groups";
}

std::string_view tile_placement(Placement placement) {
  switch (placement) {
    case Placement::m_groups:
      return "m_groups";
    case Placement::k_groups:
      return "k_groups";
    default:
      return "matrices";
  }
}

void check_count(std::int64_t groups) {
  if (groups > most_groups)
    throw Error(ErrorCode::unsupported,
                fmt::format("/groups/count: no kernel in this version for {} groups; at most {}", groups,
                            most_groups),
                "/groups/count");
}

struct Configure {
  std::optional<Configuration> operator()(const problem::Dequantize& op) const {
    if (op.groups) check_count(op.groups->count);
    DequantizeTraits traits{
        .format = op.q.dtype,
        .output = op.output,
        .mx = op.scaling == Scaling::mx,
        .axis_col = op.axis_col,
        .place = scale_place(op.block, op.scale_layout, op.axis_col, op.groups ? op.groups->alignment : 0)};
    traits.block_rows = static_cast<std::uint8_t>(op.block.rows);
    traits.block_cols = static_cast<std::uint8_t>(op.block.cols);
    return dequantize_configuration(traits);
  }
  std::optional<Configuration> operator()(const problem::PackScales& op) const {
    if (op.groups) check_count(*op.groups);
    return pack_configuration(op.unpack, op.placement);
  }
  std::optional<Configuration> operator()(const problem::PadGroups& op) const {
    check_count(op.groups);
    return pad_configuration(op.unpad);
  }
  std::optional<Configuration> operator()(const auto&) const { return std::nullopt; }
};

}  // namespace

ScalePlace scale_place(const Block& block, ScaleLayout layout, bool axis_col, int group_alignment) noexcept {
  const bool grouped = group_alignment != 0;
  switch (block.kind) {
    case Block::Kind::tensor:
      return ScalePlace::tensor;
    case Block::Kind::row:
      return grouped && axis_col ? ScalePlace::row_of_group : ScalePlace::row;
    case Block::Kind::k:  // of GEMM operands alone
    case Block::Kind::extents:
      break;
  }
  switch (layout) {
    case ScaleLayout::plain:
      return ScalePlace::plain;
    case ScaleLayout::mn_major:
      return ScalePlace::mn_major;
    case ScaleLayout::blocked:
      break;
  }
  if (grouped && axis_col) return ScalePlace::k_groups;
  // Groups that start on tiles of rows lie as the whole matrix does.
  return grouped && group_alignment < 128 ? ScalePlace::m_groups : ScalePlace::blocked;
}

Configuration dequantize_configuration(const DequantizeTraits& traits) {
  const bool blocks = traits.place != ScalePlace::tensor && traits.place != ScalePlace::row &&
                      traits.place != ScalePlace::row_of_group;
  // In tiles of codes every row has its own.
  const bool rows = traits.place == ScalePlace::plain || traits.place == ScalePlace::mn_major;
  Configuration configuration;
  configuration.kernel = "quantize/dequantize";
  configuration.constants = {
      {"format", name("Element", mxjit::to_string(traits.format))},
      {"output", name("Element", mxjit::to_string(traits.output))},
      {"mx", traits.mx},
      {"axis_col", traits.axis_col},
      {"scale_place", name("ScalePlace", to_string(traits.place))},
      {"block_rows", std::int64_t{rows ? traits.block_rows : std::uint8_t{1}}},
      {"block_columns", std::int64_t{blocks ? traits.block_cols : std::uint8_t{1}}},
  };
  configuration.threads = threads;
  configuration.min_blocks = 3;
  return configuration;
}

Configuration pack_configuration(bool unpack, Placement placement) {
  Configuration configuration;
  configuration.kernel = "scales/pack";
  configuration.constants = {{"unpack", unpack},
                             {"placement", name("TilePlacement", tile_placement(placement))}};
  configuration.threads = threads;
  configuration.min_blocks = 4;
  return configuration;
}

Configuration pad_configuration(bool unpad) {
  Configuration configuration;
  configuration.kernel = "groups/pad";
  configuration.constants = {{"unpad", unpad}};
  configuration.threads = threads;
  configuration.min_blocks = 4;
  return configuration;
}

std::optional<Configuration> configure_move(const problem::Problem& problem) {
  return std::visit(Configure{}, problem.op);
}

}  // namespace mxjit::configure
