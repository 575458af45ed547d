#include "problem/vocabulary.hpp"

namespace mxjit::problem {

namespace {

using Kind = Block::Kind;
using Span = OperandScaling::Span;

constexpr Block k32{Kind::extents, 1, 32};
constexpr Block k128{Kind::extents, 1, 128};
constexpr Block k32x32{Kind::extents, 32, 32};
constexpr Block k128x128{Kind::extents, 128, 128};
constexpr Block kRow{Kind::row};
constexpr Block kTensor{Kind::tensor};

constexpr std::array kMxBlocks{k32, k128, k32x32, k128x128};
constexpr std::array kFloatBlocks{k128, k128x128, kRow, kTensor};
constexpr std::array kMxTileBlocks{k32};
constexpr std::array kFloatTileBlocks{k128};

constexpr OperandScaling operand(Scaling kind, Span span, const Block& block = {}) {
  return {.kind = kind, .span = span, .block = block, .layout = ScaleLayout::plain};
}
constexpr std::array kMxOperands{
    operand(Scaling::mx, Span::block, k32), operand(Scaling::mx, Span::block, k128),
    operand(Scaling::mx, Span::block, k32x32), operand(Scaling::mx, Span::block, k128x128)};
constexpr std::array kFloatOperands{
    operand(Scaling::fp32, Span::tensor), operand(Scaling::fp32, Span::row), operand(Scaling::fp32, Span::k),
    operand(Scaling::fp32, Span::block, k128), operand(Scaling::fp32, Span::block, k128x128)};

constexpr std::array kMxRoundings{Rounding::rceil, Rounding::floor, Rounding::ceil, Rounding::even};
constexpr std::array kFloatRoundings{Rounding::none, Rounding::pow2};
constexpr std::array kPlain{ScaleLayout::plain};
constexpr std::array kPlainOrBlocked{ScaleLayout::plain, ScaleLayout::blocked};
constexpr std::array kPlainOrMnMajor{ScaleLayout::plain, ScaleLayout::mn_major};

}  // namespace

std::span<const Block> recipe_blocks(Scaling scaling) {
  if (scaling == Scaling::mx) return kMxBlocks;
  return kFloatBlocks;
}

std::span<const Block> tile_blocks(Scaling scaling) {
  if (scaling == Scaling::mx) return kMxTileBlocks;
  return kFloatTileBlocks;
}

std::span<const OperandScaling> operand_blocks(Scaling scaling) {
  if (scaling == Scaling::mx) return kMxOperands;
  return kFloatOperands;
}

std::span<const Rounding> roundings(Scaling scaling) {
  if (scaling == Scaling::mx) return kMxRoundings;
  return kFloatRoundings;
}

std::span<const ScaleLayout> scale_layouts(Scaling scaling, const Block& block) {
  if (scaling == Scaling::mx) return kPlainOrBlocked;
  if (block.kind == Kind::extents) return kPlainOrMnMajor;
  return kPlain;
}

std::span<const ScaleLayout> scale_layouts(const OperandScaling& scaling) {
  if (scaling.span != Span::block) return kPlain;
  return scale_layouts(scaling.kind, scaling.block);
}

nlohmann::json block_json(const Block& block) {
  switch (block.kind) {
    case Kind::row:
      return "row";
    case Kind::tensor:
      return "tensor";
    case Kind::extents:
      break;
  }
  if (block.rows == 1) return block.cols;
  return nlohmann::json::array({block.rows, block.cols});
}

nlohmann::json block_json(const OperandScaling& scaling) {
  switch (scaling.span) {
    case Span::row:
      return "row";
    case Span::tensor:
      return "tensor";
    case Span::k:
      return "k";
    case Span::block:
      break;
  }
  return block_json(scaling.block);
}

Block canonical(Block block) {
  if (block.kind == Kind::extents) return block;
  Block result;
  result.kind = block.kind;
  return result;
}

std::string_view to_string(InputLayout layout) { return layout == InputLayout::row ? "row" : "col"; }

std::string_view to_string(GemmGroupKind kind) {
  switch (kind) {
    case GemmGroupKind::m:
      return "m";
    case GemmGroupKind::m_masked:
      return "m_masked";
    case GemmGroupKind::ids:
      return "ids";
    case GemmGroupKind::k:
      return "k";
  }
  return "unknown";
}

}  // namespace mxjit::problem
