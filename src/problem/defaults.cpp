// What a problem leaves open and the library fills in: pitches, alignments, the shape of a product.
#include <algorithm>

#include "problem/layout.hpp"
#include "problem/problem.hpp"
#include "problem/vocabulary.hpp"

namespace mxjit::problem {

namespace {

// Calls visit(pitched, row extent, dtype) for every tensor that carries ld and align.
void each_pitch(Quantize& op, const auto& visit) {
  visit(op.input, row_extent(op.input.shape, op.input_layout == InputLayout::col), op.input.dtype);
}
void each_pitch(Dequantize& op, const auto& visit) {
  visit(op.q, row_extent(op.q.shape, op.axis_col), op.q.dtype);
  visit(op.output_pitch, op.q.shape.back(), op.output);
}
void each_pitch(PackScales& op, const auto& visit) { visit(op.pitch, op.shape.back(), DType::e8m0); }
void each_pitch(PadGroups& op, const auto& visit) { visit(op.input, op.input.shape.back(), op.input.dtype); }
void each_pitch(Gemm& op, const auto& visit) {
  for (Operand* operand : {&op.a, &op.b}) {
    visit(operand->tensor, row_extent(operand->tensor.shape, operand->mn_major), operand->tensor.dtype);
  }
  visit(op.d.tensor, op.d.tensor.shape.back(), op.d.tensor.dtype);
  if (op.bias) visit(op.bias_pitch, gemm_extents(op).n, *op.bias);
}
void each_pitch(Moe& op, const auto& visit) { visit(op.d_pitch, op.hidden, op.d); }

// Fields that follow from others or say nothing get one value, so that equal problems compare equal.
void settle(Quantize& op) { op.recipe.block = canonical(op.recipe.block); }
void settle(Dequantize& op) { op.block = canonical(op.block); }
void settle(PackScales&) {}
void settle(PadGroups&) {}
void settle(Gemm& op) {
  op.d.tensor.shape = gemm_output_shape(op);
  if (!op.bias) op.bias_pitch = {};
  for (Operand* operand : {&op.a, &op.b}) {
    if (operand->scaling) operand->scaling->block = canonical(operand->scaling->block);
  }
}
void settle(Moe& op) {
  op.weights.block = canonical(op.weights.block);
  op.activations.block = canonical(op.activations.block);
}

// Calls `visit(extent)` for every extent that the problem states.
void each_extent(Shape& shape, const auto& visit) { std::for_each(shape.begin(), shape.end(), visit); }
void each_extent(Quantize& op, const auto& visit) { each_extent(op.input.shape, visit); }
void each_extent(Dequantize& op, const auto& visit) { each_extent(op.q.shape, visit); }
void each_extent(PackScales& op, const auto& visit) { each_extent(op.shape, visit); }
void each_extent(PadGroups& op, const auto& visit) { each_extent(op.input.shape, visit); }
void each_extent(Gemm& op, const auto& visit) {
  each_extent(op.a.tensor.shape, visit);
  each_extent(op.b.tensor.shape, visit);
  each_extent(op.d.tensor.shape, visit);
}
void each_extent(Moe& op, const auto& visit) {
  for (Extent* extent : {&op.tokens, &op.hidden, &op.intermediate}) visit(*extent);
}

}  // namespace

std::string_view op_name(const Problem& problem) {
  struct Namer {
    std::string_view operator()(const Quantize&) const { return "quantize"; }
    std::string_view operator()(const Dequantize&) const { return "dequantize"; }
    std::string_view operator()(const PackScales& op) const {
      return op.unpack ? "unpack_scales" : "pack_scales";
    }
    std::string_view operator()(const PadGroups& op) const {
      return op.unpad ? "unpad_groups" : "pad_groups";
    }
    std::string_view operator()(const Gemm&) const { return "gemm"; }
    std::string_view operator()(const Moe&) const { return "moe"; }
  };
  return std::visit(Namer{}, problem.op);
}

Problem with_defaults(Problem problem) {
  std::visit(
      [](auto& op) {
        settle(op);
        each_pitch(op, [](auto& tensor, const Extent& row, DType dtype) {
          if (!tensor.ld && !row.is_range()) tensor.ld = row.max;
          if (!tensor.align && tensor.ld) tensor.align = widest_align(*tensor.ld, dtype);
        });
      },
      problem.op);
  return problem;
}

bool is_concrete(const Problem& problem) {
  Problem copy = problem;
  bool concrete = true;
  std::visit(
      [&](auto& op) { each_extent(op, [&](const Extent& e) { concrete = concrete && !e.is_range(); }); },
      copy.op);
  return concrete;
}

Problem largest(const Problem& problem) {
  Problem result = problem;
  std::visit(
      [](auto& op) {
        each_extent(op, [](Extent& extent) { extent.min = extent.max; });
        settle(op);
        // A promise about a range of packed pitches need not hold for the largest.
        each_pitch(op, [](auto& tensor, const Extent& row, DType dtype) {
          if (!tensor.ld && tensor.align && *tensor.align > widest_align(row.max, dtype))
            tensor.align.reset();
        });
      },
      result.op);
  return with_defaults(std::move(result));
}

}  // namespace mxjit::problem
