// The closed sets of the problem file: what each field may hold, in one place for parsing, printing and
// checking.
#pragma once

#include <array>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>

#include "problem/problem.hpp"

namespace mxjit::problem {

inline constexpr std::array kFormats{DType::e4m3, DType::e5m2};
inline constexpr std::array kFloats{DType::bf16, DType::fp16, DType::fp32};
inline constexpr std::array kPadTypes{DType::bf16, DType::fp16, DType::fp32, DType::e4m3,
                                      DType::e5m2, DType::e8m0, DType::u8,   DType::i8};
inline constexpr std::array kOperandTypes{DType::e4m3, DType::e5m2, DType::bf16};
inline constexpr std::array kResultTypes{DType::bf16, DType::fp16, DType::fp32, DType::e4m3};
inline constexpr std::array kScalings{Scaling::mx, Scaling::fp32};
inline constexpr std::array kInputLayouts{InputLayout::row, InputLayout::col};
inline constexpr std::array kPlacements{Placement::dense, Placement::m_groups, Placement::k_groups,
                                        Placement::per_expert};
inline constexpr std::array kAccumulations{Accumulation::promote, Accumulation::fast, Accumulation::exact};
inline constexpr std::array kGroupKinds{GemmGroupKind::m, GemmGroupKind::m_masked, GemmGroupKind::ids,
                                        GemmGroupKind::k};
inline constexpr std::array<std::int64_t, 5> kAligns{16, 8, 4, 2, 1};
inline constexpr std::array<std::int64_t, 3> kGroupAlignments{128, 32, 1};
/// Group counts and int32 offsets are what a device reads.
inline constexpr std::int64_t kMaxGroups = 2147483647;

/// Where a span of blocks is looked up: the blocks of a recipe, of a requantization inside a tile, of an
/// operand.
std::span<const Block> recipe_blocks(Scaling scaling);
std::span<const Block> tile_blocks(Scaling scaling);
std::span<const Block> operand_blocks(Scaling scaling);
std::span<const Rounding> roundings(Scaling scaling);
/// The scale layouts that `scaling` with blocks of `block` has.
std::span<const ScaleLayout> scale_layouts(Scaling scaling, const Block& block);

/// A block as a problem file writes it: 32, [32,32], "row".
nlohmann::json block_json(const Block& block);
/// The rows and cols that a block of whole rows, columns or tensors leaves unused are those of Block{}.
Block canonical(Block block);

}  // namespace mxjit::problem
