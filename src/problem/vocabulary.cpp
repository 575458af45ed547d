#include "problem/vocabulary.hpp"

namespace mxjit::problem {

namespace {

using Kind = Block::Kind;

constexpr Block k32{Kind::extents, 1, 32};
constexpr Block k128{Kind::extents, 1, 128};
constexpr Block k32x32{Kind::extents, 32, 32};
constexpr Block k128x128{Kind::extents, 128, 128};
constexpr Block kRow{Kind::row};
constexpr Block kTensor{Kind::tensor};
constexpr Block kContraction{Kind::k};

constexpr std::array kMxBlocks{k32, k128, k32x32, k128x128};
constexpr std::array kFloatBlocks{k128, k128x128, kRow, kTensor};
constexpr std::array kFloatOperandBlocks{kTensor, kRow, kContraction, k128, k128x128};
constexpr std::array kMxTileBlocks{k32};
constexpr std::array kFloatTileBlocks{k128};

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

std::span<const Block> operand_blocks(Scaling scaling) {
  if (scaling == Scaling::mx) return kMxBlocks;
  return kFloatOperandBlocks;
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

nlohmann::json block_json(const Block& block) {
  switch (block.kind) {
    case Kind::row:
      return "row";
    case Kind::tensor:
      return "tensor";
    case Kind::k:
      return "k";
    case Kind::extents:
      break;
  }
  if (block.rows == 1) return block.cols;
  return nlohmann::json::array({block.rows, block.cols});
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
