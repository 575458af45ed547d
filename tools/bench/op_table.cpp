#include "bench/op_table.hpp"

namespace mxjit::bench {
namespace {

constexpr Axes rows{true, false}, columns{false, true}, both{true, true};
constexpr Block row_block{.kind = Block::Kind::row, .rows = 1, .cols = 1};
constexpr Block tensor_block{.kind = Block::Kind::tensor, .rows = 1, .cols = 1};
constexpr Block b32{.rows = 1, .cols = 32}, wide{.rows = 1, .cols = 128}, square{.rows = 128, .cols = 128};

/// Codes between two kernels of a composition.
constexpr const char *row_codes = "row codes", *col_codes = "col codes";

Contest alone(OpCase one) { return {std::move(one), {}, {}}; }

/// Both axes beside a kernel for each.
Contest beside_its_axes(const OpCase& one) {
  return {one, {with_axes(one, rows), with_axes(one, columns)}, "mxjit row + col, two kernels"};
}

OpCase packing(const char* codes, const char* placed, const Sizes& shape, Placement placement,
               const std::vector<std::int32_t>& ends) {
  OpCase pack = pack_case(shape, placement, ends, false);
  pack.places = {{"s", codes}, {"s_blocked", placed}};
  return pack;
}

/// Both axes with groups beside casts without groups and the swizzles of their codes.
Contest beside_its_kernels(const Sizes& shape, std::int64_t count, int alignment) {
  const std::vector<std::int32_t> ends = uneven_ends(count, shape[0], alignment);
  std::vector<std::int32_t> code_ends = ends;
  for (std::int32_t& end : code_ends) end /= 32;
  Contest contest = alone(grouped_case(shape, both, ScaleLayout::blocked, ends, alignment));
  const bool dense_rows = alignment == 128;  // whose placement without groups is the same
  OpCase row = mx_case(shape, rows, Rounding::rceil, dense_rows ? ScaleLayout::blocked : ScaleLayout::plain);
  OpCase col = mx_case(shape, columns, Rounding::rceil, ScaleLayout::plain);
  col.places["s_col"] = col_codes;
  const OpCase pack_col =
      packing(col_codes, "out s_col", {shape[1], (shape[0] + 31) / 32}, Placement::k_groups, code_ends);
  if (dense_rows) {
    contest.peer = {row, col, pack_col};
    contest.peer_name = "mxjit row + col + pack_scales, three kernels";
    return contest;
  }
  row.places["s_row"] = row_codes;
  const OpCase pack_row =
      packing(row_codes, "out s_row", {shape[0], (shape[1] + 31) / 32}, Placement::m_groups, ends);
  contest.peer = {row, pack_row, col, pack_col};
  contest.peer_name = "mxjit row + col + 2 pack_scales, four kernels";
  return contest;
}

void add_quantizers(const Sizes& shape, std::vector<Contest>& list) {
  for (const ScaleLayout layout : {ScaleLayout::plain, ScaleLayout::blocked}) {
    list.push_back(alone(mx_case(shape, rows, Rounding::rceil, layout)));
    list.push_back(beside_its_axes(mx_case(shape, both, Rounding::rceil, layout)));
    list.push_back(alone(mx_case(shape, columns, Rounding::rceil, layout)));
  }
  list.push_back(alone(mx_case(shape, rows, Rounding::floor, ScaleLayout::plain)));
  list.push_back(beside_its_axes(mx_case(shape, both, Rounding::floor, ScaleLayout::plain)));
  list.push_back(alone(fp32_case(shape, rows, row_block)));
  list.push_back(beside_its_axes(fp32_case(shape, both, row_block)));
  list.push_back(alone(fp32_case(shape, rows, wide)));
  list.push_back(beside_its_axes(fp32_case(shape, both, wide)));
  list.push_back(alone(fp32_case(shape, rows, square)));
  list.push_back(beside_its_axes(fp32_case(shape, both, square)));
  list.push_back(alone(fp32_case(shape, rows, tensor_block)));
  for (const ScaleLayout layout : {ScaleLayout::plain, ScaleLayout::blocked}) {
    list.push_back(alone(with_swiglu(mx_case(shape, rows, Rounding::rceil, layout))));
    list.push_back(beside_its_axes(with_swiglu(mx_case(shape, both, Rounding::rceil, layout))));
  }
  list.push_back(alone(with_swiglu(fp32_case(shape, rows, row_block))));
  for (const ScaleLayout layout : {ScaleLayout::plain, ScaleLayout::blocked})
    list.push_back(alone(with_rmsnorm(mx_case(shape, rows, Rounding::rceil, layout))));
  list.push_back(beside_its_axes(with_rmsnorm(mx_case(shape, both, Rounding::rceil, ScaleLayout::blocked))));
  list.push_back(alone(with_rmsnorm(fp32_case(shape, rows, row_block))));
  list.push_back(alone(with_rmsnorm(fp32_case(shape, rows, wide))));
}

void add_inverses(const Sizes& shape, std::vector<Contest>& list) {
  list.push_back(alone(dequantize_case(shape, Scaling::mx, b32, ScaleLayout::plain, false)));
  list.push_back(alone(dequantize_case(shape, Scaling::mx, b32, ScaleLayout::blocked, false)));
  list.push_back(alone(dequantize_case(shape, Scaling::mx, b32, ScaleLayout::blocked, true)));
  list.push_back(alone(dequantize_case(shape, Scaling::fp32, row_block, ScaleLayout::plain, false)));
  list.push_back(alone(dequantize_case(shape, Scaling::fp32, square, ScaleLayout::plain, false)));
  const Sizes codes = {shape[0], (shape[1] + 31) / 32};
  list.push_back(alone(pack_case(codes, Placement::dense, {}, false)));
  list.push_back(alone(pack_case(codes, Placement::dense, {}, true)));
}

void add_groups(const Sizes& shape, std::vector<Contest>& list) {
  list.push_back(beside_its_kernels(shape, 8, 128));
  list.push_back(beside_its_kernels(shape, 64, 128));
  list.push_back(beside_its_kernels(shape, 8, 32));
}

void add_moves(const Sizes& shape, std::vector<Contest>& list) {
  const Sizes row_codes_shape = {shape[0], shape[1] / 32}, col_codes_shape = {shape[1], shape[0] / 32};
  for (const std::int64_t count : {8, 64}) {
    list.push_back(
        alone(pack_case(row_codes_shape, Placement::m_groups, uneven_ends(count, shape[0], 1), false)));
    list.push_back(
        alone(pack_case(col_codes_shape, Placement::k_groups, uneven_ends(count, shape[0] / 32, 4), false)));
  }
  for (const bool unpad : {false, true})
    for (const std::int64_t count : {8, 64})
      list.push_back(alone(pad_case(shape, uneven_ends(count, shape[0], 1), 128, unpad)));
}

bool has_columns(const OpCase& one) {
  if (const auto* quantize = std::get_if<problem::Quantize>(&one.problem.op)) return quantize->axes.col;
  const auto* dequantize = std::get_if<problem::Dequantize>(&one.problem.op);
  return dequantize != nullptr && dequantize->axis_col;
}

}  // namespace

Family family_of(const Sizes& shape) {
  Family family{shape, {}};
  if (shape.size() == 3) {  // weights of experts, for their gradients
    for (const ScaleLayout layout : {ScaleLayout::plain, ScaleLayout::blocked})
      family.contests.push_back(alone(mx_case(shape, columns, Rounding::rceil, layout)));
    return family;
  }
  add_quantizers(shape, family.contests);
  add_inverses(shape, family.contests);
  if (shape[0] < 32)  // decoding
    std::erase_if(family.contests, [](const Contest& contest) { return has_columns(contest.one); });
  if (shape[0] < 1024) return family;
  add_groups(shape, family.contests);
  add_moves(shape, family.contests);
  return family;
}

std::vector<Family> op_table(bool quick) {
  if (quick) return {family_of({4096, 5120}), family_of({128, 5120})};
  std::vector<Family> all;
  for (const Sizes& shape :
       {Sizes{131072, 5120}, Sizes{131072, 2048}, Sizes{16384, 5120}, Sizes{8192, 5120}, Sizes{4096, 5120},
        Sizes{128, 5120}, Sizes{64, 4096}, Sizes{1, 7168}, Sizes{16, 8192, 5120}})
    all.push_back(family_of(shape));
  return all;
}

}  // namespace mxjit::bench
