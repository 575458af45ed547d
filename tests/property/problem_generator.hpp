// Random valid problems over every op and option. The rules are those of the problem file, written a second
// time: nothing here calls the code under test.
#pragma once

#include <cstdint>
#include <random>

#include "problem/problem.hpp"

namespace mxjit::problem {

class ProblemGenerator {
 public:
  explicit ProblemGenerator(std::uint64_t seed) : random_(seed) {}

  Problem any() {
    Problem problem;
    if (chance(3)) problem.name = pick<std::string>({"layer 0", "q\"uoted\\", "größe", "\t", "~/a"});
    switch (below(6)) {
      case 0:
        problem.op = quantize();
        break;
      case 1:
        problem.op = dequantize();
        break;
      case 2:
        problem.op = pack_scales();
        break;
      case 3:
        problem.op = pad_groups();
        break;
      case 4:
        problem.op = gemm();
        break;
      default:
        problem.op = moe();
        break;
    }
    return problem;
  }

  Quantize quantize() {
    Quantize op;
    op.recipe = recipe();
    op.axes = pick<Axes>({{true, false}, {false, true}, {true, true}});
    const Block& block = op.recipe.block;
    if (block.kind != Block::Kind::tensor && chance(3)) op.groups = m_groups(block, op.axes);
    op.input.dtype = pick<DType>({DType::bf16, DType::fp16, DType::fp32});
    op.input.shape = op.groups || chance(2) ? Shape{extent(), extent()} : Shape{extent(), extent(), extent()};
    op.input_layout = chance(4) ? InputLayout::col : InputLayout::row;
    op.emit_high = chance(4);
    if (chance(4)) op.pre = swiglu();
    if (chance(8)) op.pre = RmsNorm{number()};
    if (std::holds_alternative<Swiglu>(op.pre)) make_even(op.input.shape.back());
    promise(op.input, op.input_layout == InputLayout::col ? 2 : 1);
    return op;
  }

  Dequantize dequantize() {
    Dequantize op;
    const Recipe chosen = recipe();
    op.q.dtype = chosen.format;
    op.scaling = chosen.scaling;
    op.block = chosen.block;
    op.scale_layout = chosen.scale_layout;
    op.axis_col = chance(2);
    if (op.block.kind != Block::Kind::tensor && chance(3))
      op.groups = m_groups(op.block, {!op.axis_col, op.axis_col});
    op.q.shape = op.groups || chance(2) ? Shape{extent(), extent()} : Shape{extent(), extent(), extent()};
    op.output = pick<DType>({DType::bf16, DType::fp16, DType::fp32});
    promise(op.q, op.axis_col ? 2 : 1);
    promise(op.output_pitch, op.q.shape.back(), op.output);
    return op;
  }

  PackScales pack_scales() {
    PackScales op;
    op.unpack = chance(2);
    op.placement =
        pick<Placement>({Placement::dense, Placement::m_groups, Placement::k_groups, Placement::per_expert});
    op.shape = {extent(), extent()};
    if (op.placement == Placement::per_expert) op.shape.push_back(extent());
    if (op.placement == Placement::m_groups || op.placement == Placement::k_groups) op.groups = count();
    promise(op.pitch, op.shape.back(), DType::u8);
    return op;
  }

  PadGroups pad_groups() {
    PadGroups op;
    op.unpad = chance(2);
    op.input.dtype = pick<DType>(
        {DType::bf16, DType::fp16, DType::fp32, DType::e4m3, DType::e5m2, DType::e8m0, DType::u8, DType::i8});
    op.input.shape = {extent(), extent()};
    op.groups = count();
    op.alignment = 1 + below(300);
    promise(op.input, 1);
    return op;
  }

  Gemm gemm() {
    Gemm op;
    op.a.tensor.dtype = operand_type();
    op.b.tensor.dtype = operand_type();
    const Extent m = extent();
    Extent n = extent();
    const Extent k = extent();
    if (chance(4)) op.epilogue = swiglu();
    if (op.epilogue) make_even(n);
    op.a.tensor.shape = {m, k};
    op.b.tensor.shape = {n, k};
    const auto lead = [](Shape& shape, const Extent& extent) { shape.insert(shape.begin(), extent); };
    if (chance(2)) {
      op.groups = GemmGroups{pick<GemmGroupKind>({GemmGroupKind::m, GemmGroupKind::m_masked,
                                                  GemmGroupKind::ids, GemmGroupKind::k}),
                             count()};
      if (op.groups->kind != GemmGroupKind::k) lead(op.b.tensor.shape, op.groups->count);
      if (op.groups->kind == GemmGroupKind::m_masked) lead(op.a.tensor.shape, op.groups->count);
    } else if (chance(3)) {
      const Extent batch = extent();
      lead(op.a.tensor.shape, chance(4) ? Extent(1) : batch);
      lead(op.b.tensor.shape, chance(4) ? Extent(1) : batch);
    }
    for (Operand* operand : {&op.a, &op.b}) {
      operand->mn_major = chance(3);
      if (chance(2)) operand->scaling = operand_scaling();
      promise(operand->tensor, operand->mn_major ? 2 : 1);
    }
    op.accumulation = chance(2) && fast_runs(op.a) && fast_runs(op.b)
                          ? Accumulation::fast
                          : pick<Accumulation>({Accumulation::promote, Accumulation::exact});
    const Extent d_row = op.epilogue ? Extent(n.min / 2, n.max / 2) : n;
    op.d.tensor.dtype = pick<DType>({DType::bf16, DType::fp16, DType::fp32, DType::e4m3});
    promise(op.d.tensor, d_row, op.d.tensor.dtype);
    op.d.amax = chance(4);
    if (op.d.tensor.dtype == DType::e4m3 && chance(2)) {
      op.d.requant = recipe();
      op.d.requant->format = DType::e4m3;
      op.d.requant->block = {Block::Kind::extents, 1, op.d.requant->scaling == Scaling::mx ? 32 : 128};
      op.d.requant->scale_layout = ScaleLayout::plain;
    }
    if (chance(3)) {
      op.bias = pick<DType>({DType::bf16, DType::fp16, DType::fp32});
      promise(op.bias_pitch, n, *op.bias);
    }
    if (chance(3)) op.alpha = number();
    if (!op.epilogue && op.d.tensor.dtype != DType::e4m3 && chance(3)) op.beta = number();
    op.tail_keep = chance(3);
    op.deterministic = !chance(4);
    op.batch_invariant = chance(4);
    return op;
  }

  Moe moe() {
    Moe op;
    op.tokens = extent();
    op.hidden = extent();
    op.intermediate = extent();
    op.experts = count();
    op.top_k = 1 + below(op.experts);
    op.first_local = below(op.experts + 1);
    op.local_count = below(op.experts - op.first_local + 1);
    op.weights = recipe();
    do op.activations = recipe();
    while (op.activations.block.kind == Block::Kind::extents && op.activations.block.rows > 1);
    op.activation = swiglu();
    op.weight_on_input = chance(2);
    op.d = pick<DType>({DType::bf16, DType::fp16, DType::fp32});
    promise(op.d_pitch, op.hidden, op.d);
    return op;
  }

  std::int64_t below(std::int64_t limit) {
    return std::uniform_int_distribution<std::int64_t>(0, limit - 1)(random_);
  }
  bool chance(std::int64_t one_in) { return below(one_in) == 0; }

 private:
  template <class T>
  T pick(std::initializer_list<T> values) {
    return values.begin()[below(static_cast<std::int64_t>(values.size()))];
  }

  Extent extent() {
    const auto one = [this] {
      return pick<std::int64_t>(
          {0, 1, 2, 31, 32, 33, 64, 127, 128, 129, 384, 1024, 5120, 65536, below(4096)});
    };
    if (!chance(6)) return {one()};
    const std::int64_t a = one();
    const std::int64_t b = one();
    return {std::min(a, b), std::max(a, b)};
  }
  static void make_even(Extent& extent) { extent = Extent(extent.min / 2 * 2, extent.max / 2 * 2); }
  std::int64_t count() { return pick<std::int64_t>({1, 2, 7, 8, 33, 256, 1024}); }
  double number() { return pick<double>({1.0, 0.5, 1.702, 7.0, 1e-6, 1e300, 5e-324, 0.1}); }

  Swiglu swiglu() {
    Swiglu swiglu;
    swiglu.interleave = chance(2);
    if (chance(2)) swiglu.alpha = number();
    if (chance(2)) swiglu.limit = number();
    return swiglu;
  }

  Block block(Scaling scaling) {
    using Kind = Block::Kind;
    if (scaling == Scaling::mx) {
      return pick<Block>({{Kind::extents, 1, 32},
                          {Kind::extents, 1, 128},
                          {Kind::extents, 32, 32},
                          {Kind::extents, 128, 128}});
    }
    return pick<Block>({{Kind::extents, 1, 128}, {Kind::extents, 128, 128}, {Kind::row}, {Kind::tensor}});
  }

  ScaleLayout layout(Scaling scaling, bool blocks) {
    if (chance(2)) return ScaleLayout::plain;
    if (scaling == Scaling::mx) return ScaleLayout::blocked;
    return blocks ? ScaleLayout::mn_major : ScaleLayout::plain;
  }

  Recipe recipe() {
    Recipe recipe;
    recipe.format = pick<DType>({DType::e4m3, DType::e5m2});
    recipe.scaling = pick<Scaling>({Scaling::mx, Scaling::fp32});
    recipe.block = block(recipe.scaling);
    recipe.rounding = recipe.scaling == Scaling::mx
                          ? pick<Rounding>({Rounding::rceil, Rounding::floor, Rounding::ceil, Rounding::even})
                          : pick<Rounding>({Rounding::none, Rounding::pow2});
    recipe.scale_layout = layout(recipe.scaling, recipe.block.kind == Block::Kind::extents);
    if (recipe.scaling == Scaling::fp32 && chance(3)) recipe.amax_cap = number();
    return recipe;
  }

  // An alignment that no block of `axes` reaches over.
  MGroups m_groups(const Block& block, const Axes& axes) {
    int along_m = 1;
    if (block.kind == Block::Kind::extents && axes.row) along_m = std::max(along_m, block.rows);
    if (block.kind == Block::Kind::extents && axes.col) along_m = std::max(along_m, block.cols);
    MGroups groups;
    groups.count = count();
    do groups.alignment = pick<int>({128, 32, 1});
    while (groups.alignment % along_m != 0);
    return groups;
  }

  DType operand_type() { return pick<DType>({DType::e4m3, DType::e4m3, DType::e5m2, DType::bf16}); }

  OperandScaling operand_scaling() {
    OperandScaling scaling;
    scaling.kind = pick<Scaling>({Scaling::mx, Scaling::fp32});
    if (scaling.kind == Scaling::fp32 && chance(2)) {
      scaling.block = {.kind = pick<Block::Kind>({Block::Kind::row, Block::Kind::tensor, Block::Kind::k})};
      return scaling;
    }
    do scaling.block = block(scaling.kind);
    while (scaling.block.kind != Block::Kind::extents);
    scaling.layout = layout(scaling.kind, true);
    return scaling;
  }

  static bool fast_runs(const Operand& operand) {
    return operand.tensor.dtype != DType::bf16 && !(operand.scaling && operand.scaling->kind == Scaling::mx);
  }

  // Sometimes promises a pitch, an alignment or both.
  template <class Tensor>
  void promise(Tensor& tensor, const Extent& row, DType dtype) {
    if (chance(2)) tensor.ld = row.max + pick<std::int64_t>({0, 1, 8, 16, below(100)});
    if (!tensor.ld && row.is_range()) return;
    const std::int64_t pitch = (tensor.ld ? *tensor.ld : row.max) * static_cast<std::int64_t>(size_of(dtype));
    if (!chance(2)) return;
    do tensor.align = pick<int>({16, 8, 4, 2, 1});
    while (pitch % *tensor.align != 0);
  }
  void promise(TensorSpec& tensor, std::size_t row_from_the_end) {
    promise(tensor, tensor.shape[tensor.shape.size() - row_from_the_end], tensor.dtype);
  }

  std::mt19937_64 random_;
};

}  // namespace mxjit::problem
