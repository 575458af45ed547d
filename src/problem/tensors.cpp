// The tensors of a problem: names, dtypes and stored shapes (what a safetensors file holds).
#include <algorithm>

#include "problem/fields.hpp"
#include "problem/layout.hpp"
#include "problem/problem.hpp"

namespace mxjit::problem {

namespace {

using Sizes = std::vector<std::int64_t>;

Sizes sizes_of(const Shape& shape) {
  Sizes sizes;
  for (const Extent& extent : shape) sizes.push_back(extent.max);
  return sizes;
}

Sizes transposed(Sizes sizes) {
  std::swap(sizes[sizes.size() - 1], sizes[sizes.size() - 2]);
  return sizes;
}

TensorDecl input(std::string name, DType dtype, Sizes shape) {
  TensorDecl decl;
  decl.name = std::move(name);
  decl.dtype = dtype;
  decl.shape = std::move(shape);
  return decl;
}

TensorDecl output(std::string name, DType dtype, Sizes shape) {
  TensorDecl decl = input(std::move(name), dtype, std::move(shape));
  decl.output = true;
  return decl;
}

TensorDecl status() {
  TensorDecl decl = output("status", DType::i32, {4});
  decl.optional = true;
  return decl;
}

// Where the scales of groups lie when they are blocked.
struct Grouping {
  enum class Along : std::uint8_t { none, rows, contraction } along = Along::none;
  std::int64_t count = 0;
};

// The matrix whose scales are stored: `lead` is its leading extents, (rows, contraction) the rest, so a
// column quantization passes its transposed data.
struct Scaled {
  Sizes lead;
  std::int64_t rows = 0;
  std::int64_t contraction = 0;
};

Sizes with_lead(const Sizes& lead, const Sizes& rest) {
  Sizes shape = lead;
  shape.insert(shape.end(), rest.begin(), rest.end());
  return shape;
}

// Tiles of 128x4 codes over (rows, blocks along the contraction), matrix by matrix.
std::int64_t blocked_bytes(const Checked& math, const Scaled& data, std::int64_t columns,
                           const Grouping& groups) {
  std::int64_t bytes = 0;
  switch (groups.along) {
    case Grouping::Along::none:
      bytes = math.mul(math.round_up(data.rows, 128), math.round_up(columns, 4));
      break;
    case Grouping::Along::rows:
      bytes = math.mul(math.add(data.rows, math.mul(128, groups.count)), math.round_up(columns, 4));
      break;
    case Grouping::Along::contraction:
      bytes = math.mul(math.round_up(data.rows, 128), math.add(columns, math.mul(4, groups.count)));
      break;
  }
  for (const std::int64_t extent : data.lead) bytes = math.mul(bytes, extent);
  return bytes;
}

TensorDecl block_scales(const Checked& math, std::string name, Scaling scaling, const Block& block,
                        ScaleLayout layout, const Scaled& data, const Grouping& groups) {
  const std::int64_t rows = Checked::ceil_div(data.rows, block.rows);
  const std::int64_t columns = Checked::ceil_div(data.contraction, block.cols);
  switch (layout) {
    case ScaleLayout::plain:
      break;
    case ScaleLayout::blocked: {
      TensorDecl decl = input(std::move(name), DType::u8, {blocked_bytes(math, data, columns, groups)});
      decl.also_dtypes = {DType::e8m0};
      return decl;
    }
    case ScaleLayout::mn_major:
      return input(std::move(name), DType::fp32, with_lead(data.lead, {columns, math.round_up(rows, 4)}));
  }
  TensorDecl decl = input(std::move(name), scaling == Scaling::mx ? DType::e8m0 : DType::fp32,
                          with_lead(data.lead, {rows, columns}));
  if (scaling == Scaling::mx) decl.also_dtypes = {DType::u8};
  return decl;
}

// The scales of a recipe's data. `per_group` holds for one factor per row and group: (G, rows).
TensorDecl recipe_scales(const Checked& math, std::string name, Scaling scaling, const Block& block,
                         ScaleLayout layout, const Scaled& data, const Grouping& groups) {
  switch (block.kind) {
    case Block::Kind::tensor:
      return input(std::move(name), DType::fp32, {1});
    case Block::Kind::row:
      if (groups.along == Grouping::Along::contraction) {
        return input(std::move(name), DType::fp32, {groups.count, data.rows});
      }
      return input(std::move(name), DType::fp32, with_lead(data.lead, {data.rows}));
    case Block::Kind::k:
      return input(std::move(name), DType::fp32, with_lead(data.lead, {data.contraction}));
    case Block::Kind::extents:
      break;
  }
  return block_scales(math, std::move(name), scaling, block, layout, data, groups);
}

// The grouping of one axis of a quantization: groups along M cut the rows of s_row and the contraction of
// s_col. Aligned to 128 they start on tile rows, so the dense matrix serves as it is.
Grouping quantize_grouping(const std::optional<MGroups>& groups, bool col) {
  if (!groups) return {};
  if (col) return {Grouping::Along::contraction, groups->count};
  if (groups->alignment == 128) return {};
  return {Grouping::Along::rows, groups->count};
}

Scaled quantized_data(const Sizes& shape, bool col) {
  Scaled data;
  data.lead.assign(shape.begin(), shape.end() - 2);
  data.rows = shape[shape.size() - 2];
  data.contraction = shape.back();
  if (col) std::swap(data.rows, data.contraction);
  return data;
}

std::vector<TensorDecl> declare(const Quantize& op) {
  const Checked math("/input/shape");
  const Sizes in = sizes_of(op.input.shape);
  Sizes shape = in;
  if (std::holds_alternative<Swiglu>(op.pre)) shape.back() /= 2;

  std::vector<TensorDecl> decls;
  decls.push_back(input("x", op.input.dtype, op.input_layout == InputLayout::col ? transposed(in) : in));
  if (op.groups) decls.push_back(input("offsets", DType::i32, {op.groups->count}));
  if (std::holds_alternative<RmsNorm>(op.pre))
    decls.push_back(input("weight", op.input.dtype, {shape.back()}));
  for (const bool col : {false, true}) {
    if (!(col ? op.axes.col : op.axes.row)) continue;
    decls.push_back(output(col ? "q_col" : "q_row", op.recipe.format, col ? transposed(shape) : shape));
    TensorDecl scales =
        recipe_scales(math, col ? "s_col" : "s_row", op.recipe.scaling, op.recipe.block,
                      op.recipe.scale_layout, quantized_data(shape, col), quantize_grouping(op.groups, col));
    scales.output = true;
    decls.push_back(std::move(scales));
  }
  if (op.emit_high) decls.push_back(output("y", DType::bf16, shape));
  if (op.groups) decls.push_back(status());
  for (const TensorDecl& decl : decls) (void)math.bytes(decl.shape, decl.dtype);
  return decls;
}

std::vector<TensorDecl> declare(const Dequantize& op) {
  const Checked math("/q/shape");
  const Sizes shape = sizes_of(op.q.shape);
  std::vector<TensorDecl> decls;
  decls.push_back(input("q", op.q.dtype, op.axis_col ? transposed(shape) : shape));
  decls.push_back(recipe_scales(math, "s", op.scaling, op.block, op.scale_layout,
                                quantized_data(shape, op.axis_col),
                                quantize_grouping(op.groups, op.axis_col)));
  if (op.groups) decls.push_back(input("offsets", DType::i32, {op.groups->count}));
  decls.push_back(output("x", op.output, shape));
  for (const TensorDecl& decl : decls) (void)math.bytes(decl.shape, decl.dtype);
  return decls;
}

std::vector<TensorDecl> declare(const PackScales& op) {
  const Checked math("/scales/shape");
  const Sizes shape = sizes_of(op.shape);
  Grouping groups;
  if (op.placement == Placement::m_groups) groups = {Grouping::Along::rows, *op.groups};
  if (op.placement == Placement::k_groups) groups = {Grouping::Along::contraction, *op.groups};
  TensorDecl plain = input("s", DType::u8, shape);
  plain.also_dtypes = {DType::e8m0};
  plain.output = op.unpack;
  TensorDecl blocked = input("s_blocked", DType::u8,
                             {blocked_bytes(math, quantized_data(shape, false), shape.back(), groups)});
  blocked.also_dtypes = {DType::e8m0};
  blocked.output = !op.unpack;
  (void)math.bytes(plain.shape, plain.dtype);

  std::vector<TensorDecl> decls;
  decls.push_back(op.unpack ? blocked : plain);
  if (op.groups) decls.push_back(input("offsets", DType::i32, {*op.groups}));
  decls.push_back(op.unpack ? plain : blocked);
  return decls;
}

std::vector<TensorDecl> declare(const PadGroups& op) {
  const Checked math("/input/shape");
  const Sizes shape = sizes_of(op.input.shape);
  const Sizes padded{math.round_up(math.add(shape[0], math.mul(op.groups, op.alignment)), op.alignment),
                     shape[1]};
  (void)math.bytes(shape, op.input.dtype);
  (void)math.bytes(padded, op.input.dtype);
  const TensorDecl offsets = input("offsets", DType::i32, {op.groups});
  if (op.unpad) {
    return {input("x_padded", op.input.dtype, padded), offsets, input("starts", DType::i32, {op.groups}),
            output("x", op.input.dtype, shape)};
  }
  return {input("x", op.input.dtype, shape), offsets, output("x_padded", op.input.dtype, padded),
          output("starts", DType::i32, {op.groups}), output("ends", DType::i32, {op.groups})};
}

// Which operand of a product: its rows are M or N.
TensorDecl operand_scales(const Checked& math, std::string name, const Operand& operand,
                          const std::optional<GemmGroups>& groups, bool is_a) {
  const OperandScaling& scaling = *operand.scaling;
  const Scaled data = quantized_data(sizes_of(operand.tensor.shape), false);
  Grouping grouping;
  if (groups && groups->kind == GemmGroupKind::k) grouping = {Grouping::Along::contraction, groups->count};
  if (groups && groups->kind == GemmGroupKind::m && is_a) grouping = {Grouping::Along::rows, groups->count};

  TensorDecl decl =
      recipe_scales(math, std::move(name), scaling.kind, scaling.block, scaling.layout, data, grouping);
  if (scaling.layout == ScaleLayout::blocked && grouping.along == Grouping::Along::rows) {
    // Groups that happen to be aligned to 128 may bring the dense matrix: the same bytes, without slack.
    const std::int64_t columns = Checked::ceil_div(data.contraction, scaling.block.cols);
    decl.also_shapes.push_back({blocked_bytes(math, data, columns, {})});
  }
  return decl;
}

// What the groups and the output's form add to the inputs.
void declare_gemm_extras(const Gemm& op, const Sizes& d, std::vector<TensorDecl>& decls) {
  if (op.beta != 0) decls.push_back(input("c", op.d.tensor.dtype, d));
  if (op.bias) {
    const std::int64_t n = gemm_extents(op).n.max;
    TensorDecl bias = input("bias", *op.bias, {n});
    if (op.groups && op.groups->kind != GemmGroupKind::k) bias.also_shapes.push_back({op.groups->count, n});
    decls.push_back(std::move(bias));
  }
  if (op.d.tensor.dtype == DType::e4m3 && !op.d.requant) {
    TensorDecl scale = input("d_scale", DType::fp32, {1});
    scale.also_shapes.emplace_back(d.begin(), d.end() - 1);
    decls.push_back(std::move(scale));
  }
  if (!op.groups) return;
  switch (op.groups->kind) {
    case GemmGroupKind::m:
    case GemmGroupKind::k:
      decls.push_back(input("offsets", DType::i32, {op.groups->count}));
      break;
    case GemmGroupKind::m_masked:
      decls.push_back(input("counts", DType::i32, {op.groups->count}));
      break;
    case GemmGroupKind::ids:
      decls.push_back(input("ids", DType::i32, {d.front()}));
      break;
  }
}

std::vector<TensorDecl> declare(const Gemm& op) {
  const Checked a_math("/a/shape");
  const Checked b_math("/b/shape");
  const Sizes a = sizes_of(op.a.tensor.shape);
  const Sizes b = sizes_of(op.b.tensor.shape);
  const Sizes d = sizes_of(gemm_output_shape(op));
  (void)b_math.bytes(b, op.b.tensor.dtype);

  std::vector<TensorDecl> decls;
  decls.push_back(input("a", op.a.tensor.dtype, op.a.mn_major ? transposed(a) : a));
  if (op.a.scaling) decls.push_back(operand_scales(a_math, "a_scale", op.a, op.groups, true));
  decls.push_back(input("b", op.b.tensor.dtype, op.b.mn_major ? transposed(b) : b));
  if (op.b.scaling) decls.push_back(operand_scales(b_math, "b_scale", op.b, op.groups, false));
  declare_gemm_extras(op, d, decls);

  decls.push_back(output("d", op.d.tensor.dtype, d));
  if (op.d.requant) {
    Grouping grouping;
    if (op.groups && op.groups->kind == GemmGroupKind::m)
      grouping = {Grouping::Along::rows, op.groups->count};
    const Recipe& recipe = *op.d.requant;
    TensorDecl scales = recipe_scales(a_math, "d_scales", recipe.scaling, recipe.block, recipe.scale_layout,
                                      quantized_data(d, false), grouping);
    scales.output = true;
    decls.push_back(std::move(scales));
  }
  if (op.d.amax) decls.push_back(output("amax", DType::fp32, {1}));
  if (op.groups) decls.push_back(status());
  for (const TensorDecl& decl : decls) {
    if (decl.name[0] != 'b') (void)a_math.bytes(decl.shape, decl.dtype);
  }
  return decls;
}

std::vector<TensorDecl> declare(const Moe& op) {
  const Checked math("/hidden");
  const std::int64_t hidden = op.hidden.max;
  const std::int64_t gate_up = math.mul(2, op.intermediate.max);
  const Sizes w13{op.local_count, gate_up, hidden};
  const Sizes w2{op.local_count, hidden, op.intermediate.max};
  const Sizes routed{op.tokens.max, op.top_k};
  const auto weight_scales = [&](std::string name, const Sizes& shape) {
    return recipe_scales(math, std::move(name), op.weights.scaling, op.weights.block, op.weights.scale_layout,
                         quantized_data(shape, false), {});
  };
  const auto bias = [](std::string name, const Sizes& shape) {
    TensorDecl decl = input(std::move(name), DType::bf16, {shape[0], shape[1]});
    decl.also_dtypes = {DType::fp32};
    decl.optional = true;
    return decl;
  };
  TensorDecl ids = input("topk_ids", DType::i32, routed);
  ids.also_dtypes = {DType::i64};
  std::vector<TensorDecl> decls{input("x", DType::bf16, {op.tokens.max, hidden}),
                                std::move(ids),
                                input("topk_weights", DType::fp32, routed),
                                input("w13", op.weights.format, w13),
                                weight_scales("w13_scale", w13),
                                input("w2", op.weights.format, w2),
                                weight_scales("w2_scale", w2),
                                bias("w13_bias", w13),
                                bias("w2_bias", w2),
                                output("y", op.d, {op.tokens.max, hidden})};
  for (const TensorDecl& decl : decls) (void)math.bytes(decl.shape, decl.dtype);
  return decls;
}

}  // namespace

std::vector<TensorDecl> declare(const Problem& problem) {
  return std::visit([](const auto& op) { return declare(op); }, problem.op);
}

std::vector<TensorDecl> tensors(const Problem& problem) {
  validate(problem);
  if (!is_concrete(problem)) fail("", "a problem whose extents are single numbers", "a range");
  return declare(problem);
}

}  // namespace mxjit::problem
