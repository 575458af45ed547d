// What the fields of a problem mean together. Every rule names the field that breaks it.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "problem/fields.hpp"
#include "problem/layout.hpp"
#include "problem/problem.hpp"
#include "problem/vocabulary.hpp"

namespace mxjit::problem {

using nlohmann::json;

namespace {

template <class T>
void one_of(const T& value, std::span<const T> allowed, const std::string& pointer) {
  if (std::find(allowed.begin(), allowed.end(), value) == allowed.end()) {
    fail(pointer, list_names(allowed), fmt::format("\"{}\"", to_string(value)));
  }
}

void at_least(std::int64_t value, std::int64_t low, const std::string& pointer) {
  if (value < low) fail(pointer, fmt::format("an integer, at least {}", low), fmt::to_string(value));
}

void finite(double value, const std::string& pointer) {
  if (!std::isfinite(value)) fail(pointer, "a finite number", fmt::to_string(value));
}

void positive(double value, const std::string& pointer) {
  if (!std::isfinite(value) || value <= 0) fail(pointer, "a finite number above 0", fmt::to_string(value));
}

std::string text_of(const Extent& extent) {
  return extent.is_range() ? fmt::format("{} to {}", extent.min, extent.max) : fmt::to_string(extent.min);
}

void check_extent(const Extent& extent, const std::string& pointer) {
  at_least(extent.min, 0, pointer);
  if (extent.max < extent.min) fail(pointer, "a range with min <= max", text_of(extent));
}

void check_shape(const Shape& shape, std::size_t low, std::size_t high, const std::string& pointer) {
  if (shape.size() < low || shape.size() > high) {
    fail(pointer, low == high ? fmt::format("{} extents", low) : fmt::format("{} or {} extents", low, high),
         fmt::to_string(shape.size()));
  }
  for (std::size_t i = 0; i < shape.size(); ++i) check_extent(shape[i], fmt::format("{}/{}", pointer, i));
}

void check_even(const Extent& extent, const std::string& pointer) {
  if (extent.min % 2 != 0 || extent.max % 2 != 0)
    fail(pointer, "an even extent under swiglu", text_of(extent));
}

// `rows` rows of `row` elements. The pointer is that of the tensor object, `shape_pointer` of what gave its
// shape.
template <class Tensor>
void check_pitch(const Tensor& tensor, const Extent& row, const Shape& shape, DType dtype,
                 const std::string& pointer, const std::string& shape_pointer) {
  if (tensor.ld && *tensor.ld < row.max) {
    fail(pointer + "/ld", fmt::format("at least the row extent {}", row.max), fmt::to_string(*tensor.ld));
  }
  if (tensor.align) {
    const std::int64_t align = *tensor.align;
    const std::string got = fmt::to_string(align);
    if (std::find(kAligns.begin(), kAligns.end(), align) == kAligns.end()) {
      fail(pointer + "/align", "one of 16, 8, 4, 2, 1", got);
    }
    // Of a range of pitches the promise picks those that keep it.
    const bool known = tensor.ld.has_value() || !row.is_range();
    const std::int64_t ld = tensor.ld ? *tensor.ld : row.max;
    if (known && align > widest_align(ld, dtype)) {
      fail(pointer + "/align", fmt::format("a divisor of the pitch, {} elements of {}", ld, to_string(dtype)),
           got);
    }
  }
  const Checked sizes(tensor.ld ? pointer + "/ld" : shape_pointer);
  std::int64_t bytes =
      sizes.mul(std::max(tensor.ld.value_or(0), row.max), static_cast<std::int64_t>(size_of(dtype)));
  for (const Extent& extent : shape) {
    if (&extent != &row && extent.max > 0) bytes = sizes.mul(bytes, extent.max);
  }
}

void check_tensor(const TensorSpec& tensor, std::size_t low, std::size_t high, bool transposed,
                  std::span<const DType> dtypes, const std::string& pointer) {
  one_of(tensor.dtype, dtypes, pointer + "/dtype");
  check_shape(tensor.shape, low, high, pointer + "/shape");
  check_pitch(tensor, row_extent(tensor.shape, transposed), tensor.shape, tensor.dtype, pointer,
              pointer + "/shape");
}

void check_block(const Block& block, std::span<const Block> allowed, const std::string& pointer) {
  if (std::find(allowed.begin(), allowed.end(), canonical(block)) != allowed.end()) return;
  std::string known;
  for (const Block& candidate : allowed) known += (known.empty() ? "" : ", ") + block_json(candidate).dump();
  fail(pointer, allowed.size() > 1 ? "one of " + known : known, block_json(block).dump());
}

void check_scheme(Scaling scaling, const Block& block, ScaleLayout layout, std::span<const Block> blocks,
                  const std::string& pointer) {
  one_of(scaling, std::span<const Scaling>(kScalings), pointer + "/scaling");
  check_block(block, blocks, pointer + "/block");
  one_of(layout, scale_layouts(scaling, block), pointer + "/scale_layout");
}

void check_recipe(const Recipe& recipe, std::span<const Block> blocks, const std::string& pointer) {
  one_of(recipe.format, std::span<const DType>(kFormats), pointer + "/format");
  check_scheme(recipe.scaling, recipe.block, recipe.scale_layout, blocks, pointer);
  one_of(recipe.rounding, roundings(recipe.scaling), pointer + "/rounding");
  if (recipe.amax_cap) {
    if (recipe.scaling == Scaling::mx) {
      fail(pointer + "/amax_cap", "null with scaling \"mx\"", fmt::to_string(*recipe.amax_cap));
    }
    positive(*recipe.amax_cap, pointer + "/amax_cap");
  }
}

void check_swiglu(const Swiglu& swiglu, const std::string& pointer) {
  finite(swiglu.alpha, pointer + "/alpha");
  if (swiglu.limit) positive(*swiglu.limit, pointer + "/limit");
}

void check_count(std::int64_t count, const std::string& pointer) {
  if (count < 1 || count > kMaxGroups) {
    fail(pointer, fmt::format("an integer from 1 to {}", kMaxGroups), fmt::to_string(count));
  }
}

// Groups lie along M of a 2D matrix; a block must not reach over a group's end.
void check_m_groups(const MGroups& groups, std::size_t rank, const Block& block, const Axes& axes) {
  if (rank != 2) fail("/groups", "null for a 3D shape", "groups");
  check_count(groups.count, "/groups/count");
  if (std::find(kGroupAlignments.begin(), kGroupAlignments.end(), groups.alignment) ==
      kGroupAlignments.end()) {
    fail("/groups/alignment", "one of 128, 32, 1", fmt::to_string(groups.alignment));
  }
  if (block.kind == Block::Kind::tensor)
    fail("/groups", "null with block \"tensor\", which spans every group", "groups");
  if (block.kind == Block::Kind::row) return;
  const int along_m = std::max(axes.row ? block.rows : 1, axes.col ? block.cols : 1);
  if (groups.alignment % along_m != 0) {
    fail("/groups/alignment", fmt::format("a multiple of the block's extent along M, {}", along_m),
         fmt::to_string(groups.alignment));
  }
}

void check(const Quantize& op) {
  check_tensor(op.input, 2, 3, op.input_layout == InputLayout::col, kFloats, "/input");
  check_recipe(op.recipe, recipe_blocks(op.recipe.scaling), "");
  if (!op.axes.row && !op.axes.col) fail("/axes", "\"row\", \"col\" or both", "none");
  if (op.groups) check_m_groups(*op.groups, op.input.shape.size(), op.recipe.block, op.axes);
  if (const auto* swiglu = std::get_if<Swiglu>(&op.pre)) {
    check_swiglu(*swiglu, "/pre");
    check_even(op.input.shape.back(), fmt::format("/input/shape/{}", op.input.shape.size() - 1));
  }
  if (const auto* norm = std::get_if<RmsNorm>(&op.pre)) {
    if (!std::isfinite(norm->eps) || norm->eps < 0) {
      fail("/pre/eps", "a finite number, at least 0", fmt::to_string(norm->eps));
    }
  }
}

void check(const Dequantize& op) {
  check_tensor(op.q, 2, 3, op.axis_col, kFormats, "/q");
  check_scheme(op.scaling, op.block, op.scale_layout, recipe_blocks(op.scaling), "");
  if (op.groups) {
    check_m_groups(*op.groups, op.q.shape.size(), op.block, {.row = !op.axis_col, .col = op.axis_col});
  }
  one_of(op.output, std::span<const DType>(kFloats), "/output/dtype");
  check_pitch(op.output_pitch, op.q.shape.back(), op.q.shape, op.output, "/output", "/q/shape");
}

void check(const PackScales& op) {
  one_of(op.placement, std::span<const Placement>(kPlacements), "/placement");
  const std::size_t rank = op.placement == Placement::per_expert ? 3 : 2;
  check_shape(op.shape, rank, rank, "/scales/shape");
  check_pitch(op.pitch, op.shape.back(), op.shape, DType::e8m0, "/scales", "/scales/shape");
  const bool grouped = op.placement == Placement::m_groups || op.placement == Placement::k_groups;
  const std::string placement = fmt::format("placement \"{}\"", to_string(op.placement));
  if (grouped && !op.groups) fail("/groups", "{\"count\": G} with " + placement, "none");
  if (!grouped && op.groups) fail("/groups", "null with " + placement, "groups");
  if (op.groups) check_count(*op.groups, "/groups/count");
}

void check(const PadGroups& op) {
  check_tensor(op.input, 2, 2, false, kPadTypes, "/input");
  check_count(op.groups, "/groups/count");
  at_least(op.alignment, 1, "/alignment");
}

void check_operand(const Operand& operand, std::size_t low, std::size_t high, const std::string& pointer) {
  check_tensor(operand.tensor, low, high, operand.mn_major, kOperandTypes, pointer);
  if (!operand.scaling) return;
  const auto& [kind, block, layout] = *operand.scaling;
  one_of(kind, std::span<const Scaling>(kScalings), pointer + "/scaling/kind");
  check_block(block, operand_blocks(kind), pointer + "/scaling/block");
  one_of(layout, scale_layouts(kind, block), pointer + "/scaling/layout");
}

void same_extent(const Extent& extent, const Extent& other, const std::string& what,
                 const std::string& pointer) {
  if (extent != other) fail(pointer, fmt::format("{}, {}", what, text_of(other)), text_of(extent));
}

void check_gemm_shapes(const Gemm& op) {
  const Shape& a = op.a.tensor.shape;
  const Shape& b = op.b.tensor.shape;
  if (!op.groups) {
    if (a.size() != b.size()) {
      fail("/b/shape", fmt::format("{} extents, as /a/shape has, or groups", a.size()),
           fmt::to_string(b.size()));
    }
    const Extent one(1);
    if (a.size() == 3 && a[0] != one && b[0] != one)
      same_extent(b[0], a[0], "the batch extent of /a/shape, or 1", "/b/shape/0");
  } else {
    check_count(op.groups->count, "/groups/count");
    if (op.groups->kind != GemmGroupKind::k)
      same_extent(b[0], op.groups->count, "/groups/count", "/b/shape/0");
    if (op.groups->kind == GemmGroupKind::m_masked)
      same_extent(a[0], op.groups->count, "/groups/count", "/a/shape/0");
  }
  same_extent(b.back(), a.back(), "K of /a/shape", fmt::format("/b/shape/{}", b.size() - 1));
  if (op.epilogue) check_even(b[b.size() - 2], fmt::format("/b/shape/{}", b.size() - 2));
}

void check_fast(const Operand& operand, std::string_view name) {
  if (operand.scaling && operand.scaling->kind == Scaling::mx) {
    fail("/accumulation", fmt::format("\"promote\" or \"exact\" with mx scaling of {}", name), "\"fast\"");
  }
  if (operand.tensor.dtype == DType::bf16) {
    fail("/accumulation", fmt::format("\"promote\" or \"exact\" with {} of bf16", name), "\"fast\"");
  }
}

void check_result(const Gemm& op) {
  const GemmOutput& d = op.d;
  one_of(d.tensor.dtype, std::span<const DType>(kResultTypes), "/d/dtype");
  const Shape shape = gemm_output_shape(op);
  check_pitch(d.tensor, shape.back(), shape, d.tensor.dtype, "/d", "/a/shape");
  if (d.requant) {
    check_recipe(*d.requant, tile_blocks(d.requant->scaling), "/d/requant");
    if (d.tensor.dtype != DType::e4m3) {
      fail("/d/requant", "null unless /d/dtype is \"e4m3\"", "a recipe");
    }
    if (d.requant->format != d.tensor.dtype) {
      fail("/d/requant/format", "\"e4m3\", as /d/dtype is",
           fmt::format("\"{}\"", to_string(d.requant->format)));
    }
  }
  finite(op.alpha, "/alpha");
  finite(op.beta, "/beta");
  if (op.beta == 0) return;
  if (op.epilogue) fail("/beta", "0 with an epilogue", fmt::to_string(op.beta));
  if (d.tensor.dtype == DType::e4m3) fail("/beta", "0 with d of e4m3", fmt::to_string(op.beta));
}

void check(const Gemm& op) {
  using Ranks = std::pair<std::size_t, std::size_t>;
  Ranks a{2, 3};
  Ranks b{2, 3};
  if (op.groups) {
    one_of(op.groups->kind, std::span<const GemmGroupKind>(kGroupKinds), "/groups/kind");
    a = op.groups->kind == GemmGroupKind::m_masked ? Ranks{3, 3} : Ranks{2, 2};
    b = op.groups->kind == GemmGroupKind::k ? Ranks{2, 2} : Ranks{3, 3};
  }
  check_operand(op.a, a.first, a.second, "/a");
  check_operand(op.b, b.first, b.second, "/b");
  check_gemm_shapes(op);
  one_of(op.accumulation, std::span<const Accumulation>(kAccumulations), "/accumulation");
  if (op.accumulation == Accumulation::fast) {
    check_fast(op.a, "a");
    check_fast(op.b, "b");
  }
  if (op.epilogue) check_swiglu(*op.epilogue, "/epilogue");
  if (op.bias) {
    one_of(*op.bias, std::span<const DType>(kFloats), "/bias/dtype");
    const Extent n = gemm_extents(op).n;
    check_pitch(op.bias_pitch, n, {}, *op.bias, "/bias", "/b/shape");
  }
  check_result(op);
}

void check(const Moe& op) {
  check_extent(op.tokens, "/tokens");
  check_extent(op.hidden, "/hidden");
  check_extent(op.intermediate, "/intermediate");
  check_count(op.experts, "/experts");
  if (op.top_k < 1 || op.top_k > op.experts) {
    fail("/top_k", fmt::format("an integer from 1 to /experts, {}", op.experts), fmt::to_string(op.top_k));
  }
  if (op.first_local < 0 || op.local_count < 0 || op.first_local > op.experts ||
      op.local_count > op.experts - op.first_local) {
    fail("/local_experts", fmt::format("[first, count] inside the {} experts", op.experts),
         fmt::format("[{}, {}]", op.first_local, op.local_count));
  }
  check_recipe(op.weights, recipe_blocks(op.weights.scaling), "/weights");
  check_recipe(op.activations, recipe_blocks(op.activations.scaling), "/activations");
  if (op.activations.block.kind == Block::Kind::extents && op.activations.block.rows > 1) {
    fail("/activations/block", "a block inside one token's row", block_json(op.activations.block).dump());
  }
  check_swiglu(op.activation, "/activation");
  one_of(op.d, std::span<const DType>(kFloats), "/d/dtype");
  check_pitch(op.d_pitch, op.hidden, {op.tokens}, op.d, "/d", "/tokens");
}

void check_name(const std::string& name) {
  try {
    (void)json(name).dump();
  } catch (const json::exception&) {
    fail("/name", "UTF-8", describe(json(name)));
  }
}

}  // namespace

void validate(const Problem& problem) {
  check_name(problem.name);
  std::visit([](const auto& op) { check(op); }, problem.op);
  // The sizes that follow from the extents must count in int64 too, at the largest problem of a range.
  (void)declare(largest(problem));
}

}  // namespace mxjit::problem
