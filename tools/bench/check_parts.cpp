#include "bench/check_parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "mxjit/error.hpp"

namespace mxjit::bench {
namespace {

constexpr std::int64_t tile_bytes = 512;  // 128 rows by 4 codes of blocked scales

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
std::int64_t bytes_each(DType dtype) { return static_cast<std::int64_t>(size_of(dtype)); }
Region span(std::int64_t offset, std::int64_t bytes) { return {offset, 1, bytes, bytes}; }

struct Matrix {
  std::int64_t experts = 1, rows, cols;
};

Matrix matrix_of(const problem::Shape& shape) {
  const std::size_t rank = shape.size();
  return {rank == 3 ? shape[0].min : 1, shape[rank - 2].min, shape[rank - 1].min};
}

/// The case as one part.
Part whole(const OpCase& one) {
  Part part;
  part.problem = one.problem;
  part.words = one.words;
  for (const problem::TensorDecl& decl : tensors_of(one)) {
    if (one.words.contains(decl.name)) continue;
    (decl.output ? part.outputs : part.inputs)[decl.name] = span(0, bytes_of(decl));
  }
  return part;
}

/// A problem that is `shape` instead, without promises about memory.
void reshape(problem::TensorSpec& spec, problem::Shape shape) {
  spec.shape = std::move(shape);
  spec.ld.reset();
  spec.align.reset();
}

/// Scales of blocks along rows of an (m, n) matrix of `experts`: where those of some rows lie. `tile_row`:
/// the row of tiles in which the first row lies.
Region row_scales(Scaling scaling, const Block& block, ScaleLayout layout, const Matrix& matrix,
                  std::int64_t expert, std::int64_t first, std::int64_t count, std::int64_t tile_row) {
  const std::int64_t scale = scaling == Scaling::mx ? 1 : 4;
  if (block.kind == Block::Kind::tensor) return span(0, scale);
  if (block.kind == Block::Kind::row) return span((expert * matrix.rows + first) * scale, count * scale);
  const std::int64_t across = ceil_div(matrix.cols, block.cols);
  if (layout == ScaleLayout::blocked) {
    const std::int64_t row_of_tiles = ceil_div(across, 4) * tile_bytes;
    return span((expert * ceil_div(matrix.rows, 128) + tile_row) * row_of_tiles,
                ceil_div(count, 128) * row_of_tiles);
  }
  const std::int64_t row = across * scale;
  return span((expert * ceil_div(matrix.rows, block.rows) + first / block.rows) * row,
              ceil_div(count, block.rows) * row);
}

// ---- quantize

/// Some rows, and where the blocked scales of theirs lie.
struct Rows {
  std::int64_t expert, first, count;
  bool owned = true;            // by a group; false: blocked scales of groups have none of theirs
  std::int64_t tile_row = 0;    // of s_row
  std::int64_t col_offset = 0;  // in s_col, of their first tile
  std::int64_t col_pitch = 0;   // from one row of tiles of s_col to the next
};

struct Cut {
  const OpCase& one;
  const problem::Quantize& quantize;
  Matrix in;   // x
  Matrix out;  // the outputs, which have half as many columns under swiglu
  bool blocked = quantize.recipe.scale_layout == ScaleLayout::blocked;
  bool groups_place = blocked && quantize.groups.has_value();
  std::int64_t rows_each =  // whole tiles of s_col
      std::max(check_rows, blocked ? 4 * std::int64_t{quantize.recipe.block.cols} : 0);

  std::int64_t columns_of_tiles() const { return ceil_div(out.cols, 128); }

  void add_rows(std::vector<Rows>& list, std::int64_t expert, std::int64_t first, std::int64_t end,
                bool owned, std::int64_t tile_row, std::int64_t col_offset, std::int64_t col_pitch) const {
    for (std::int64_t row = first; row < end; row += rows_each) {
      list.push_back({expert, row, std::min(rows_each, end - row), owned, tile_row + (row - first) / 128,
                      col_offset + (row - first) / rows_each * tile_bytes, col_pitch});
    }
  }

  std::vector<Rows> all_rows(Parts& parts) const {
    std::vector<Rows> list;
    const std::int64_t wide = quantize.recipe.block.cols;
    const auto pitch_of = [&](std::int64_t rows) { return ceil_div(ceil_div(rows, wide), 4) * tile_bytes; };
    if (!groups_place) {
      const std::int64_t pitch = pitch_of(in.rows);
      for (std::int64_t e = 0; e < in.experts; ++e)
        add_rows(list, e, 0, in.rows, true, 0, e * columns_of_tiles() * pitch, pitch);
      return list;
    }
    const bool dense = quantize.groups->alignment == 128;  // s_row is
    const std::vector<std::int32_t>& ends = one.words.at("offsets");
    std::int64_t first = 0, tile_row = 0, col_offset = 0;
    for (const std::int32_t end : ends) {
      const std::int64_t pitch = pitch_of(end - first);
      add_rows(list, 0, first, end, true, dense ? first / 128 : tile_row, col_offset, pitch);
      tile_row += ceil_div(end - first, 128);
      col_offset += columns_of_tiles() * pitch;
      first = end;
    }
    add_rows(list, 0, first, in.rows, false, first / 128, 0, 0);
    for (const problem::TensorDecl& decl : tensors_of(one)) {
      if (decl.name == "s_col")
        parts.zeros.emplace_back("s_col", span(col_offset, bytes_of(decl) - col_offset));
      if (decl.name != "s_row" || dense) continue;
      const std::int64_t placed = tile_row * ceil_div(ceil_div(out.cols, wide), 4) * tile_bytes;
      parts.zeros.emplace_back("s_row", span(placed, bytes_of(decl) - placed));
    }
    return list;
  }

  Region col_scales(const Rows& rows) const {
    const Block& block = quantize.recipe.block;
    if (blocked)
      return {rows.col_offset, columns_of_tiles(), ceil_div(rows.count, rows_each) * tile_bytes,
              rows.col_pitch};
    const std::int64_t scale = quantize.recipe.scaling == Scaling::mx ? 1 : 4;
    const std::int64_t lines = ceil_div(out.cols, block.rows), along = ceil_div(out.rows, block.cols);
    return {(rows.expert * lines * along + rows.first / block.cols) * scale, lines,
            ceil_div(rows.count, block.cols) * scale, along * scale};
  }

  /// A part of rows with the axes `axes` of the case.
  Part part_of(const Rows& rows, Axes axes, std::int64_t more_rows) const {
    Part part;
    problem::Quantize some = quantize;
    some.axes = axes;
    some.groups.reset();
    reshape(some.input, {rows.count + more_rows, in.cols});
    const std::int64_t row = rows.expert * in.rows + rows.first;
    const std::int64_t element = bytes_each(some.input.dtype);
    part.inputs["x"] = span(row * in.cols * element, rows.count * in.cols * element);
    part.outputs["q_row"] = span(row * out.cols, rows.count * out.cols);
    part.outputs["q_col"] = {rows.expert * out.cols * out.rows + rows.first, out.cols, rows.count, out.rows};
    part.outputs["y"] = span(row * out.cols * 2, rows.count * out.cols * 2);
    const problem::Recipe& recipe = some.recipe;
    if (axes.row)
      part.outputs["s_row"] = row_scales(recipe.scaling, recipe.block, recipe.scale_layout, out, rows.expert,
                                         rows.first, rows.count, rows.tile_row);
    if (axes.col) part.outputs["s_col"] = col_scales(rows);
    if (groups_place && !rows.owned) {
      part.outputs.erase("s_col");
      if (quantize.groups->alignment != 128) part.outputs.erase("s_row");
    }
    part.problem = problem::with_defaults({"", some});
    std::erase_if(part.outputs, [&](const auto& output) {
      const auto decls = problem::tensors(part.problem);
      return std::ranges::none_of(decls, [&](const auto& decl) { return decl.name == output.first; });
    });
    for (const problem::TensorDecl& decl : problem::tensors(part.problem))
      if (decl.name == "weight") part.inputs["weight"] = span(0, bytes_of(decl));
    return part;
  }

  /// Some columns with every row of theirs.
  Part columns(std::int64_t first, std::int64_t count) const {
    Part part;
    problem::Quantize some = quantize;
    some.axes = {false, true};
    problem::Shape shape = some.input.shape;
    shape.back() = count;
    reshape(some.input, std::move(shape));
    const std::int64_t element = bytes_each(some.input.dtype);
    part.inputs["x"] = {first * element, in.experts * in.rows, count * element, in.cols * element};
    part.outputs["q_col"] = {first * out.rows, in.experts, count * out.rows, out.cols * out.rows};
    const std::int64_t sets = some.groups ? some.groups->count : in.experts;
    part.outputs["s_col"] = {first * 4, sets, count * 4, out.cols * 4};
    part.words = one.words;
    part.problem = problem::with_defaults({"", std::move(some)});
    return part;
  }
};

/// The largest magnitude of x, as a row of zeros with it.
std::vector<std::uint8_t> row_of_largest(const Cut& cut, const ReadRegion& read) {
  if (cut.quantize.input.dtype != DType::bf16)
    throw Error(ErrorCode::unsupported, cut.one.name + ": only bf16 is searched for its largest magnitude");
  const std::int64_t row = cut.in.cols * 2, at_a_time = std::max<std::int64_t>(1, (64 << 20) / row);
  unsigned largest = 0;
  for (std::int64_t first = 0; first < cut.in.rows; first += at_a_time) {
    const std::int64_t count = std::min(at_a_time, cut.in.rows - first);
    const std::vector<std::uint8_t> bytes = read("x", span(first * row, count * row));
    for (std::size_t i = 0; i < bytes.size(); i += 2) {
      std::uint16_t bits = 0;
      std::memcpy(&bits, bytes.data() + i, sizeof bits);
      largest = std::max<unsigned>(largest, bits & 0x7FFFU);
    }
  }
  std::vector<std::uint8_t> last(static_cast<std::size_t>(row));
  last[0] = static_cast<std::uint8_t>(largest);
  last[1] = static_cast<std::uint8_t>(largest >> 8);
  return last;
}

Parts cut(const OpCase& one, const problem::Quantize& quantize, std::int64_t budget, const ReadRegion& read) {
  const Matrix in = matrix_of(quantize.input.shape);
  Matrix out = in;
  if (std::holds_alternative<problem::Swiglu>(quantize.pre)) out.cols /= 2;
  const Cut cut{one, quantize, in, out};
  const Block::Kind kind = quantize.recipe.block.kind;
  const bool tensor = kind == Block::Kind::tensor;
  const std::int64_t elements = in.experts * in.rows * in.cols;
  Parts parts;
  const bool plain = quantize.input_layout == problem::InputLayout::row &&
                     quantize.recipe.scale_layout != ScaleLayout::mn_major;
  const bool pre = !std::holds_alternative<std::monostate>(quantize.pre);
  if (!plain || (tensor && (elements <= budget || quantize.axes.col || in.experts > 1)) ||
      (pre && kind == Block::Kind::row && quantize.axes.col)) {
    if (elements > budget) throw Error(ErrorCode::unsupported, one.name + ": too large to be checked whole");
    parts.parts = {whole(one)};
    return parts;
  }
  Axes axes = quantize.axes;
  if (kind == Block::Kind::row && axes.col) {
    axes.col = false;
    constexpr std::int64_t some = 16;
    const std::int64_t total = ceil_div(in.cols, some);
    for (const std::int64_t i : spread(total, some * in.experts * in.rows, budget))
      parts.parts.push_back(cut.columns(i * some, std::min(some, in.cols - i * some)));
  }
  if (!axes.row && !axes.col) return parts;
  const std::vector<Rows> rows = cut.all_rows(parts);
  std::vector<std::uint8_t> last_row;
  if (tensor) last_row = row_of_largest(cut, read);
  const auto total = static_cast<std::int64_t>(rows.size());
  for (const std::int64_t i : spread(total, cut.rows_each * in.cols, budget)) {
    parts.parts.push_back(cut.part_of(rows[static_cast<std::size_t>(i)], axes, tensor ? 1 : 0));
    parts.parts.back().last_row = last_row;
  }
  return parts;
}

// ---- the other ops

Parts cut(const OpCase& one, const problem::Dequantize& op, std::int64_t budget, const ReadRegion&) {
  constexpr std::int64_t cost = 4;  // of the reference, over that of a quantization
  if (op.groups || op.scale_layout == ScaleLayout::mn_major) return {{whole(one)}, {}};
  const Matrix logical = matrix_of(op.q.shape);
  Matrix stored = logical;
  if (op.axis_col) std::swap(stored.rows, stored.cols);
  const std::int64_t each = ceil_div(stored.rows, check_rows);
  Parts parts;
  for (const std::int64_t i : spread(stored.experts * each, cost * check_rows * stored.cols, budget)) {
    const std::int64_t expert = i / each, first = i % each * check_rows;
    const std::int64_t count = std::min(check_rows, stored.rows - first);
    problem::Dequantize some = op;
    reshape(some.q, op.axis_col ? problem::Shape{stored.cols, count} : problem::Shape{count, stored.cols});
    some.output_pitch = {};
    Part part;
    part.inputs["q"] = span((expert * stored.rows + first) * stored.cols, count * stored.cols);
    part.inputs["s"] =
        row_scales(op.scaling, op.block, op.scale_layout, stored, expert, first, count, first / 128);
    const std::int64_t element = bytes_each(op.output);
    if (op.axis_col)
      part.outputs["x"] = {(expert * logical.rows * logical.cols + first) * element, logical.rows,
                           count * element, logical.cols * element};
    else
      part.outputs["x"] =
          span((expert * logical.rows + first) * logical.cols * element, count * logical.cols * element);
    part.problem = problem::with_defaults({"", some});
    parts.parts.push_back(std::move(part));
  }
  return parts;
}

/// Columns do not depend on each other.
Parts cut(const OpCase& one, const problem::PadGroups& op, std::int64_t budget, const ReadRegion&) {
  const std::int64_t element = bytes_each(op.input.dtype), columns = op.input.shape[1].min;
  constexpr std::int64_t some = 16;
  const auto decls = tensors_of(one);
  Parts parts;
  for (const std::int64_t i : spread(ceil_div(columns, some), some * op.input.shape[0].min, budget)) {
    const std::int64_t first = i * some, count = std::min(some, columns - first);
    problem::PadGroups slab = op;
    reshape(slab.input, {op.input.shape[0], count});
    Part part;
    part.problem = problem::with_defaults({"", slab});
    part.words = one.words;
    for (const problem::TensorDecl& decl : decls) {
      if (part.words.contains(decl.name)) continue;
      const Region region = decl.shape.size() == 1
                                ? span(0, bytes_of(decl))
                                : Region{first * element, decl.shape[0], count * element, columns * element};
      (decl.output ? part.outputs : part.inputs)[decl.name] = region;
    }
    parts.parts.push_back(std::move(part));
  }
  return parts;
}

Parts cut(const OpCase& one, const auto&, std::int64_t, const ReadRegion&) { return {{whole(one)}, {}}; }

}  // namespace

std::vector<std::uint8_t> packed(const std::vector<std::uint8_t>& tensor, const Region& region) {
  std::vector<std::uint8_t> bytes;
  bytes.reserve(static_cast<std::size_t>(region.bytes()));
  for (std::int64_t row = 0; row < region.rows; ++row) {
    const auto from = tensor.begin() + region.offset + row * region.pitch;
    bytes.insert(bytes.end(), from, from + region.width);
  }
  return bytes;
}

std::vector<std::int64_t> spread(std::int64_t total, std::int64_t elements, std::int64_t budget) {
  const std::int64_t affordable = std::max<std::int64_t>(2, budget / std::max<std::int64_t>(1, elements));
  const std::int64_t count = std::min(total, affordable);
  std::vector<std::int64_t> kept;
  for (std::int64_t i = 0; i < count; ++i) kept.push_back(count == 1 ? 0 : i * (total - 1) / (count - 1));
  return kept;
}

Parts parts_of(const OpCase& one, std::int64_t budget, const ReadRegion& read) {
  return std::visit([&](const auto& op) { return cut(one, op, budget, read); }, one.problem.op);
}

}  // namespace mxjit::bench
