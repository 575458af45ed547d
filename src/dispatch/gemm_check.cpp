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
  const char* const kind = block.kind == Block::Kind::row ? "row"
                           : block.kind == Block::Kind::k ? "k"
                                                          : "tensor";
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
  const bool factors =
      block.kind == Block::Kind::tensor || block.kind == Block::Kind::row || block.kind == Block::Kind::k;
  if (!extents_128 && !factors)
    refuse_scale(operand, "block", "tensor, row, k, {1, 128} or {128, 128} with scaling fp32", scale);
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

void check_requant_options(const GemmOptions& options) {
  const Requant& requant = *options.requant;
  if (options.output != DType::e4m3)
    refuse("options.requant", "nothing unless options.output is e4m3",
           fmt::format("a scaling with output {}", to_string(options.output)));
  const bool mx = requant.scaling == Scaling::mx;
  if (!is_extents(requant.block, 1, mx ? 32 : 128))
    refuse("options.requant.block", mx ? "{1, 32} with scaling mx" : "{1, 128} with scaling fp32",
           fmt::format("{{{}, {}}}", requant.block.rows, requant.block.cols));
  const bool of_fp32 = requant.rounding == Rounding::none || requant.rounding == Rounding::pow2;
  if (of_fp32 == mx)
    refuse("options.requant.rounding",
           mx ? "rceil, floor, ceil or even with scaling mx" : "none or pow2 with scaling fp32",
           std::string(to_string(requant.rounding)));
  if (requant.layout != ScaleLayout::plain &&
      requant.layout != (mx ? ScaleLayout::blocked : ScaleLayout::mn_major))
    refuse("options.requant.layout",
           mx ? "plain or blocked with scaling mx" : "plain or mn_major with scaling fp32",
           std::string(to_string(requant.layout)));
}

// A tensor that the options do not ask for.
void check_absent(const char* name, const Tensor& tensor, const char* without) {
  if (tensor.data != nullptr) refuse(name, fmt::format("no tensor {}", without), "an address");
}

Span check_one_or_rows(const char* name, const Tensor& tensor, const Tensor& d) {
  if (tensor.dtype != DType::fp32) refuse(name, "dtype fp32", name_of(tensor.dtype));
  if (tensor.rank != 1 || tensor.shape[0] != 1) {
    bool rows = tensor.rank == d.rank - 1;
    for (int i = 0; rows && i < tensor.rank; ++i)
      rows = tensor.shape[static_cast<std::size_t>(i)] == d.shape[static_cast<std::size_t>(i)];
    if (!rows)
      refuse(name, fmt::format("shape (1) or {}", shape_text(d.shape, d.rank - 1)),
             tensor.rank >= 0 && tensor.rank <= 4 ? shape_text(tensor.shape, tensor.rank)
                                                  : fmt::format("rank {}", tensor.rank));
  }
  if (tensor.pitch != 0 && tensor.pitch != tensor.shape[static_cast<std::size_t>(tensor.rank) - 1])
    refuse(name, "packed scales (pitch 0)", fmt::format("pitch {}", tensor.pitch));
  return check_memory(name, tensor);
}

Span check_result(const char* name, const Tensor& tensor, DType dtype, const Extents& shape, int rank) {
  if (tensor.dtype != dtype) refuse(name, fmt::format("dtype {}", to_string(dtype)), name_of(tensor.dtype));
  check_shape(name, tensor, shape, rank);
  return check_memory(name, tensor);
}

// What d's dtype, blocks and largest magnitude ask for besides d. `d`: its batch, rows and columns.
template <class Input, class Output>
void check_output_forms(const GemmOptions& options, const GemmArgs& args, const OperandSizes& d, Input input,
                        Output output) {
  if (options.output == DType::e4m3 && !options.requant) {
    input(check_one_or_rows("d_scale", args.d_scale, args.d));
  } else {
    check_absent("d_scale", args.d_scale, "unless options.output is e4m3 and options.requant empty");
  }
  if (options.requant) {
    output(check_scales(
        "d_scales", args.d_scales, options.requant->scaling,
        scale_shape("d_scales", options.requant->block, options.requant->layout, d.batch, d.rows, d.k)));
    // False for NaN, too.
    if (!(args.amax_cap > 0.0F)) refuse("amax_cap", "a number above 0", fmt::format("{}", args.amax_cap));
  } else {
    check_absent("d_scales", args.d_scales, "without options.requant");
  }
  if (options.amax) {
    output(check_result("amax", args.amax, DType::fp32, {1}, 1));
  } else {
    check_absent("amax", args.amax, "without options.amax");
  }
  if (options.epilogue == Epilogue::none) return;
  if (!std::isfinite(args.swiglu_alpha))
    refuse("swiglu_alpha", "a finite number", fmt::format("{}", args.swiglu_alpha));
  if (args.swiglu_limit && !(*args.swiglu_limit > 0.0F && std::isfinite(*args.swiglu_limit)))
    refuse("swiglu_limit", "a finite number above 0", fmt::format("{}", *args.swiglu_limit));
}

void check_apart(const Span& output, const Span& other) {
  if (!overlap(other, output)) [[likely]]
    return;
  refuse(output.name, fmt::format("memory apart from {}", other.name == nullptr ? "an input" : other.name),
         fmt::format("bytes {:#x} to {:#x}, which overlap {:#x} to {:#x}", output.begin, output.end,
                     other.begin, other.end));
}

bool same_memory(const Tensor& a, const Tensor& b) {
  return a.data == b.data && row_pitch(a) == row_pitch(b);
}

}  // namespace

void check_options(const GemmOptions& options) {
  if (options.a_scale) check_scale_options("a", *options.a_scale);
  if (options.b_scale) check_scale_options("b", *options.b_scale);
  if (!is_float(options.output) && options.output != DType::e4m3)
    refuse("options.output", "bf16, fp16, fp32 or e4m3", name_of(options.output));
  if (options.requant) check_requant_options(options);
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
  const bool gated = options.epilogue != Epilogue::none;
  if (gated && b.rows % 2 != 0) refuse("b", "an even N with SwiGLU", fmt::format("N = {}", b.rows));
  const std::int64_t columns = gated ? b.rows / 2 : b.rows;
  Extents shape{a.rows, columns};
  int rank = 2;
  if (args.a.rank == 3) {
    sizes.batch = a.batch == 1 ? b.batch : a.batch;
    shape = {sizes.batch, a.rows, columns};
    rank = 3;
  }
  std::array<Span, 7> inputs;
  std::size_t count = 0;
  inputs[count++] = check_memory("a", args.a);
  inputs[count++] = check_memory("b", args.b);
  inputs[count++] = check_operand_scales("a_scale", args.a_scale, options.a_scale, a);
  inputs[count++] = check_operand_scales("b_scale", args.b_scale, options.b_scale, b);
  std::array<Span, 3> outputs;
  std::size_t results = 0;
  outputs[results++] = check_result("d", args.d, options.output, shape, rank);
  check_output_forms(
      options, args, {.batch = rank == 3 ? sizes.batch : -1, .rows = a.rows, .k = columns},
      [&](const Span& span) { inputs[count++] = span; },
      [&](const Span& span) { outputs[results++] = span; });
  if (!std::isfinite(args.alpha)) refuse("alpha", "a finite number", fmt::format("{}", args.alpha));
  if (!std::isfinite(args.beta)) refuse("beta", "a finite number", fmt::format("{}", args.beta));
  if (args.beta != 0.0F) {
    if (options.output == DType::e4m3)
      refuse("beta", "0 with an output of e4m3", fmt::format("{}", args.beta));
    if (gated) refuse("beta", "0 with SwiGLU", fmt::format("{}", args.beta));
    const Span c = check_result("c", args.c, options.output, shape, rank);
    if (!same_memory(args.c, args.d)) inputs[count++] = c;
  }
  if (args.bias.data != nullptr || args.bias.rank != 0) {
    if (!is_float(args.bias.dtype)) refuse("bias", "dtype bf16, fp16 or fp32", name_of(args.bias.dtype));
    check_shape("bias", args.bias, {b.rows}, 1);
    inputs[count++] = check_memory("bias", args.bias);
  }
  for (std::size_t i = 0; i < results; ++i) {
    for (std::size_t j = 0; j < count; ++j) check_apart(outputs[i], inputs[j]);
    for (std::size_t j = 0; j < i; ++j) check_apart(outputs[i], outputs[j]);
  }
  return sizes;
}

void check_pointers(const driver::DeviceContext& device, const GemmArgs& args) {
  check_pointer(device, "a", args.a);
  check_pointer(device, "a_scale", args.a_scale);
  check_pointer(device, "b", args.b);
  check_pointer(device, "b_scale", args.b_scale);
  check_pointer(device, "d", args.d);
  check_pointer(device, "d_scale", args.d_scale);
  check_pointer(device, "d_scales", args.d_scales);
  check_pointer(device, "amax", args.amax);
  if (args.beta != 0.0F) check_pointer(device, "c", args.c);
  check_pointer(device, "bias", args.bias);
}

}  // namespace mxjit::dispatch
