#include "dispatch/gemm_check.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <string>

#include "dispatch/tensor_check.hpp"

namespace mxjit::dispatch {
namespace {

bool is_float(DType dtype) { return dtype == DType::bf16 || dtype == DType::fp16 || dtype == DType::fp32; }

std::string name_of(DType dtype) { return std::string(to_string(dtype)); }

bool is_extents(const Block& block, int rows, int cols) {
  return block.kind == Block::Kind::extents && block.rows == rows && block.cols == cols;
}

[[noreturn, gnu::cold]] void refuse_scale(const char* operand, const char* field, const char* expected,
                                          const OperandScale& scale) {
  const Block& block = scale.block;
  const char* const kind = block.kind == Block::Kind::row ? "row" : "tensor";
  refuse(fmt::format("options.{}_scale.{}", operand, field).c_str(), expected,
         fmt::format(
             "scaling {}, block {}, layout {}", to_string(scale.scaling),
             block.kind == Block::Kind::extents ? fmt::format("{{{}, {}}}", block.rows, block.cols) : kind,
             to_string(scale.layout)));
}

void check_scale_options(const char* operand, const OperandScale& scale) {
  const Block& block = scale.block;
  const ScaleLayout layout = scale.layout;
  const bool extents_128 = is_extents(block, 1, 128) || is_extents(block, 128, 128);
  if (scale.scaling == Scaling::mx) {
    if (!extents_128 && !is_extents(block, 1, 32) && !is_extents(block, 32, 32))
      refuse_scale(operand, "block", "{1, 32}, {1, 128}, {32, 32} or {128, 128} with scaling mx", scale);
    if (layout != ScaleLayout::plain && layout != ScaleLayout::blocked)
      refuse_scale(operand, "layout", "plain or blocked with scaling mx", scale);
    return;
  }
  if (scale.scaling != Scaling::fp32) refuse_scale(operand, "scaling", "mx or fp32", scale);
  if (!extents_128 && block.kind != Block::Kind::row && block.kind != Block::Kind::tensor)
    refuse_scale(operand, "block", "tensor, row, {1, 128} or {128, 128} with scaling fp32", scale);
  if (layout != ScaleLayout::plain && !(layout == ScaleLayout::mn_major && extents_128))
    refuse_scale(operand, "layout", "plain, or mn_major with blocks of 128, with scaling fp32", scale);
}

// One operand: (rows, K) and the batch, -1 for 2D.
struct OperandSizes {
  std::int64_t batch = -1, rows = 0, k = 0;
};

OperandSizes check_operand(const char* name, const Tensor& tensor, bool mn_major) {
  if (tensor.dtype != DType::e4m3 && tensor.dtype != DType::e5m2 && tensor.dtype != DType::bf16)
    refuse(name, "dtype e4m3, e5m2 or bf16", name_of(tensor.dtype));
  if (tensor.rank != 2 && tensor.rank != 3) refuse(name, "rank 2 or 3", fmt::format("rank {}", tensor.rank));
  for (int i = 0; i < tensor.rank; ++i)
    if (tensor.shape[static_cast<std::size_t>(i)] < 0)
      refuse(name, "extents of at least 0", shape_text(tensor.shape, tensor.rank));
  const std::size_t last = static_cast<std::size_t>(tensor.rank) - 1;
  return {.batch = tensor.rank == 3 ? tensor.shape[0] : -1,
          .rows = tensor.shape[mn_major ? last : last - 1],
          .k = tensor.shape[mn_major ? last - 1 : last]};
}

Span check_operand_scales(const char* name, const Tensor& tensor, const std::optional<OperandScale>& scale,
                          const OperandSizes& sizes) {
  if (!scale) {
    if (tensor.data != nullptr) refuse(name, "no tensor: the options name no scaling", "an address");
    return {};
  }
  return check_scales(name, tensor, scale->scaling,
                      scale_shape(name, scale->block, scale->layout, sizes.batch, sizes.rows, sizes.k));
}

Span check_result(const char* name, const Tensor& tensor, DType dtype, const Extents& shape, int rank) {
  if (tensor.dtype != dtype)
    refuse(name, fmt::format("dtype {}, options.output", to_string(dtype)), name_of(tensor.dtype));
  check_shape(name, tensor, shape, rank);
  return check_memory(name, tensor);
}

bool same_memory(const Tensor& a, const Tensor& b) {
  return a.data == b.data && row_pitch(a) == row_pitch(b);
}

}  // namespace

void check_options(const GemmOptions& options) {
  if (options.a_scale) check_scale_options("a", *options.a_scale);
  if (options.b_scale) check_scale_options("b", *options.b_scale);
  if (!is_float(options.output)) refuse("options.output", "bf16, fp16 or fp32", name_of(options.output));
  const auto mx = [](const std::optional<OperandScale>& scale) {
    return scale && scale->scaling == Scaling::mx;
  };
  if (options.accumulation == Accumulation::fast && (mx(options.a_scale) || mx(options.b_scale)))
    refuse("options.accumulation", "promote or exact with scaling mx", "fast");
}

GemmSizes check_gemm(const GemmOptions& options, const GemmArgs& args) {
  const OperandSizes a = check_operand("a", args.a, options.a_mn_major);
  const OperandSizes b = check_operand("b", args.b, options.b_mn_major);
  if (options.accumulation == Accumulation::fast &&
      (args.a.dtype == DType::bf16 || args.b.dtype == DType::bf16))
    refuse("options.accumulation", "promote or exact with an operand of bf16", "fast");
  if (args.b.rank != args.a.rank)
    refuse("b", fmt::format("rank {}, as a has", args.a.rank), fmt::format("rank {}", args.b.rank));
  if (b.k != a.k) refuse("b", fmt::format("K = {}, as a has", a.k), fmt::format("K = {}", b.k));
  if (a.batch != b.batch && a.batch != 1 && b.batch != 1)
    refuse("b", fmt::format("a batch of {}, as a has, or of 1", a.batch), fmt::format("{}", b.batch));

  GemmSizes sizes{.m = a.rows, .n = b.rows, .k = a.k};
  Extents shape{a.rows, b.rows};
  int rank = 2;
  if (args.a.rank == 3) {
    sizes.batch = a.batch == 1 ? b.batch : a.batch;
    shape = {sizes.batch, a.rows, b.rows};
    rank = 3;
  }
  std::array<Span, 6> inputs;
  std::size_t count = 0;
  inputs[count++] = check_memory("a", args.a);
  inputs[count++] = check_memory("b", args.b);
  inputs[count++] = check_operand_scales("a_scale", args.a_scale, options.a_scale, a);
  inputs[count++] = check_operand_scales("b_scale", args.b_scale, options.b_scale, b);
  const Span d = check_result("d", args.d, options.output, shape, rank);
  if (!std::isfinite(args.alpha)) refuse("alpha", "a finite number", fmt::format("{}", args.alpha));
  if (!std::isfinite(args.beta)) refuse("beta", "a finite number", fmt::format("{}", args.beta));
  if (args.beta != 0.0F) {
    const Span c = check_result("c", args.c, options.output, shape, rank);
    if (!same_memory(args.c, args.d)) inputs[count++] = c;
  }
  if (args.bias.data != nullptr || args.bias.rank != 0) {
    if (!is_float(args.bias.dtype)) refuse("bias", "dtype bf16, fp16 or fp32", name_of(args.bias.dtype));
    check_shape("bias", args.bias, {b.rows}, 1);
    inputs[count++] = check_memory("bias", args.bias);
  }
  for (std::size_t i = 0; i < count; ++i)
    if (overlap(inputs[i], d)) [[unlikely]]
      refuse("d",
             fmt::format("memory apart from {}", inputs[i].name == nullptr ? "an input" : inputs[i].name),
             fmt::format("bytes {:#x} to {:#x}, which overlap {:#x} to {:#x}", d.begin, d.end,
                         inputs[i].begin, inputs[i].end));
  return sizes;
}

void check_pointers(const driver::DeviceContext& device, const GemmArgs& args) {
  check_pointer(device, "a", args.a);
  check_pointer(device, "a_scale", args.a_scale);
  check_pointer(device, "b", args.b);
  check_pointer(device, "b_scale", args.b_scale);
  check_pointer(device, "d", args.d);
  if (args.beta != 0.0F) check_pointer(device, "c", args.c);
  check_pointer(device, "bias", args.bias);
}

}  // namespace mxjit::dispatch
