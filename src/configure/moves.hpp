// Configurations of the ops that are one kernel each: dequantize, pack_scales and unpack_scales, pad_groups
// and unpad_groups. Traits hold all that selects a kernel, whatever the extents, and are plain data.
#pragma once

#include <cstdint>
#include <optional>

#include "configure/configuration.hpp"
#include "problem/problem.hpp"
#include "quantize/dequantize_params.cuh"

namespace mxjit::configure {

struct DequantizeTraits {
  DType format = DType::e4m3;
  DType output = DType::bf16;
  bool mx = true;
  bool axis_col = false;
  ScalePlace place = ScalePlace::plain;
  std::uint8_t block_rows = 1;  // 1 where the place needs none
  std::uint8_t block_cols = 1;
};

/// Where the scales of a dequantization lie. `group_alignment` 0: no groups.
ScalePlace scale_place(const Block& block, ScaleLayout layout, bool axis_col, int group_alignment) noexcept;

Configuration dequantize_configuration(const DequantizeTraits& traits);
Configuration pack_configuration(bool unpack, Placement placement);
Configuration pad_configuration(bool unpad);

/// The kernel of a problem of these ops, ranges or not; nothing for another op. Throws Error(unsupported).
std::optional<Configuration> configure_move(const problem::Problem& problem);

}  // namespace mxjit::configure
