#include "dispatch/quantize_key.hpp"

#include "dispatch/problem_of_call.hpp"

namespace mxjit::dispatch {

problem::Problem quantize_problem(const QuantizeKey& key) {
  constexpr std::int64_t largest_bucket = 40;  // 2^40 rows; no tensor in memory has more
  const std::int64_t m = std::int64_t{1} << (key.m_bucket < largest_bucket ? key.m_bucket : largest_bucket);
  problem::Quantize quantize;
  quantize.input.dtype = static_cast<DType>(key.input);
  quantize.input.shape = {m, key.n};
  if (key.rank == 3) quantize.input.shape.insert(quantize.input.shape.begin(), 1);
  quantize.input_layout = (key.axes & 4) != 0 ? problem::InputLayout::col : problem::InputLayout::row;
  quantize.recipe.format = static_cast<DType>(key.format);
  quantize.recipe.scaling = static_cast<Scaling>(key.scaling);
  quantize.recipe.block = {static_cast<Block::Kind>(key.block_kind), key.block_rows, key.block_cols};
  quantize.recipe.rounding = static_cast<Rounding>(key.rounding);
  quantize.recipe.scale_layout = static_cast<ScaleLayout>(key.scale_layout);
  quantize.axes = {.row = (key.axes & 1) != 0, .col = (key.axes & 2) != 0};
  quantize.emit_high = (key.axes & 8) != 0;
  quantize.pre = pre_of(static_cast<Pre>(key.axes >> 4 & 3), (key.axes & 64) != 0);
  if (key.groups > 0)
    quantize.groups = problem::MGroups{.count = key.groups, .alignment = key.group_alignment};
  return {.name = {}, .op = quantize};
}

}  // namespace mxjit::dispatch
