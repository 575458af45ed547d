#include "device/ops_problems.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "mxjit/error.hpp"

namespace mxjit::device {
namespace {

using problem::Problem;

constexpr Block row_block{.kind = Block::Kind::row, .rows = 1, .cols = 1};
constexpr Block tensor_block{.kind = Block::Kind::tensor, .rows = 1, .cols = 1};
constexpr Block b32{.rows = 1, .cols = 32}, b128{.rows = 1, .cols = 128}, b32x32{.rows = 32, .cols = 32},
    b128x128{.rows = 128, .cols = 128};

void add_valid(std::vector<Problem>& list, Problem problem) {
  try {
    problem::validate(problem);
  } catch (const Error&) {
    return;  // a combination that problem files refuse
  }
  list.push_back(problem::with_defaults(std::move(problem)));
}

struct Scheme {
  Scaling scaling;
  Block block;
  ScaleLayout layout;
};

std::vector<Scheme> schemes() {
  std::vector<Scheme> all;
  for (const Block& block : {b32, b128, b32x32, b128x128})
    for (const ScaleLayout layout : {ScaleLayout::plain, ScaleLayout::blocked})
      all.push_back({Scaling::mx, block, layout});
  for (const Block& block : {b128, b128x128, row_block, tensor_block})
    for (const ScaleLayout layout : {ScaleLayout::plain, ScaleLayout::mn_major})
      all.push_back({Scaling::fp32, block, layout});
  return all;
}

template <typename Visit>
void for_each_dequantization(Visit&& visit) {
  for (const Scheme& scheme : schemes())
    for (const bool axis_col : {false, true})
      for (const int alignment : {0, 1, 32, 128}) {
        problem::Dequantize op;
        op.scaling = scheme.scaling;
        op.block = scheme.block;
        op.scale_layout = scheme.layout;
        op.axis_col = axis_col;
        if (alignment != 0) op.groups = problem::MGroups{.count = 5, .alignment = alignment};
        visit(op);
      }
}

// What groups divide, and into what.
struct Grouping {
  std::int64_t limit, alignment;
};

Grouping grouping_of(const Problem& problem) {
  if (const auto* op = std::get_if<problem::Dequantize>(&problem.op))
    return {op->q.shape[0].max, op->groups ? op->groups->alignment : 1};
  if (const auto* op = std::get_if<problem::PackScales>(&problem.op))
    return {op->shape[op->placement == mxjit::Placement::k_groups ? 1 : 0].max, 1};
  return {std::get<problem::PadGroups>(problem.op).input.shape[0].max, 1};
}

}  // namespace

std::vector<Problem> dequantizations() {
  std::vector<Problem> all;
  for_each_dequantization([&](problem::Dequantize op) {
    for (const DType format : {DType::e4m3, DType::e5m2})
      for (const DType output : {DType::bf16, DType::fp16, DType::fp32})
        for (const bool batched : {false, true}) {
          op.q.dtype = format;
          op.q.shape = {137, 276};
          if (batched) op.q.shape.insert(op.q.shape.begin(), 3);
          op.output = output;
          add_valid(all, {.name = {}, .op = op});
        }
  });
  return all;
}

std::vector<Problem> dequantization_shapes() {
  std::vector<Problem> all;
  for_each_dequantization([&](problem::Dequantize op) {
    for (const std::int64_t m : {1, 8, 31, 64, 128, 200, 384, 517})
      for (const std::int64_t n : {1, 7, 16, 64, 136, 256, 392}) {
        op.q = {.dtype = DType::e4m3, .shape = {m, n}, .ld = {}, .align = {}};
        add_valid(all, {.name = {}, .op = op});
      }
  });
  return all;
}

std::vector<Problem> packs() {
  std::vector<Problem> all;
  for (const bool unpack : {false, true})
    for (const mxjit::Placement placement : {mxjit::Placement::dense, mxjit::Placement::m_groups,
                                             mxjit::Placement::k_groups, mxjit::Placement::per_expert})
      for (const std::int64_t rows : {0, 1, 31, 128, 129, 300, 640})
        for (const std::int64_t columns : {0, 1, 4, 5, 32, 43}) {
          problem::PackScales op;
          op.unpack = unpack;
          op.placement = placement;
          op.shape = {rows, columns};
          if (placement == mxjit::Placement::per_expert) op.shape.insert(op.shape.begin(), 3);
          if (placement == mxjit::Placement::m_groups || placement == mxjit::Placement::k_groups)
            op.groups = (rows + columns) % 3 == 0 ? 37 : 4;
          add_valid(all, {.name = {}, .op = op});
        }
  return all;
}

std::vector<Problem> pads() {
  std::vector<Problem> all;
  for (const bool unpad : {false, true})
    for (const DType dtype : {DType::bf16, DType::fp16, DType::fp32, DType::e4m3})
      for (const std::int64_t rows : {0, 1, 33, 257})
        for (const std::int64_t columns : {0, 1, 3, 24, 130, 1040})
          for (const std::int64_t alignment : {1, 7, 32, 128}) {
            problem::PadGroups op;
            op.unpad = unpad;
            op.input = {.dtype = dtype, .shape = {rows, columns}, .ld = {}, .align = {}};
            op.groups = alignment == 7 ? 40 : 4;
            op.alignment = alignment;
            add_valid(all, {.name = {}, .op = op});
          }
  return all;
}

problem::Problem random_op(Random& random) {
  for (;;) {
    Problem problem;
    switch (random() % 4) {
      case 0: {
        problem::PadGroups op;
        op.unpad = random() % 2 == 0;
        op.input.dtype = std::array{DType::bf16, DType::fp16, DType::fp32, DType::e4m3}[random() % 4];
        op.alignment = std::array{1, 7, 16, 32, 128}[random() % 5];
        problem.op = op;
        break;
      }
      case 1: {
        problem::PackScales op;
        op.unpack = random() % 2 == 0;
        op.placement = std::array{mxjit::Placement::dense, mxjit::Placement::m_groups,
                                  mxjit::Placement::k_groups, mxjit::Placement::per_expert}[random() % 4];
        problem.op = op;
        break;
      }
      default: {
        const std::vector<Scheme> all = schemes();
        const Scheme& scheme = all[random() % all.size()];
        problem::Dequantize op;
        op.scaling = scheme.scaling;
        op.block = scheme.block;
        op.scale_layout = scheme.layout;
        op.q.dtype = random() % 2 == 0 ? DType::e4m3 : DType::e5m2;
        op.q.shape.resize(random() % 4 == 0 ? 3 : 2);
        op.output = std::array{DType::bf16, DType::fp16, DType::fp32}[random() % 3];
        op.axis_col = random() % 2 == 0;
        if (random() % 3 == 0)
          op.groups = problem::MGroups{.count = 1, .alignment = std::array{1, 32, 128}[random() % 3]};
        problem.op = op;
      }
    }
    std::vector<Problem> valid;
    add_valid(valid, op_of_other_extents(std::move(problem), random));
    if (!valid.empty()) return valid.front();
  }
}

problem::Problem op_of_other_extents(problem::Problem problem, Random& random) {
  const auto shape = [&](std::size_t rank) {
    problem::Shape extents = {random_extent(random), random_extent(random)};
    if (rank == 3) extents.insert(extents.begin(), 1 + below(random, 5));
    return extents;
  };
  const auto count = [&] { return 1 + below(random, random() % 16 == 0 ? 1024 : 70); };
  if (auto* op = std::get_if<problem::Dequantize>(&problem.op)) {
    op->q = {.dtype = op->q.dtype, .shape = shape(op->q.shape.size()), .ld = {}, .align = {}};
    op->output_pitch = {};
    if (op->groups) op->groups->count = count();
  } else if (auto* pack = std::get_if<problem::PackScales>(&problem.op)) {
    pack->shape = shape(pack->placement == mxjit::Placement::per_expert ? 3 : 2);
    pack->pitch = {};
    if (pack->placement == mxjit::Placement::m_groups || pack->placement == mxjit::Placement::k_groups)
      pack->groups = count();
  } else {
    auto& pad = std::get<problem::PadGroups>(problem.op);
    pad.input = {.dtype = pad.input.dtype, .shape = shape(2), .ld = {}, .align = {}};
    pad.groups = 1 + below(random, pad.alignment > 32 ? 12 : 70);
  }
  return problem;
}

TensorMap ops_inputs(const Problem& problem, Random& random) {
  TensorMap inputs;
  std::vector<std::int32_t> ends;
  for (const problem::TensorDecl& decl : problem::tensors(problem)) {
    if (decl.output) continue;
    if (decl.name == "offsets") {
      const auto [limit, alignment] = grouping_of(problem);
      ends = random_ends(decl.shape[0], limit, alignment, random);
      inputs[decl.name] = words(ends);
      continue;
    }
    if (decl.name == "starts") {  // anywhere in x_padded, groups may even share rows
      const std::int64_t rows = inputs.at("x_padded").shape[0];
      std::vector<std::int32_t> starts;
      for (std::size_t g = 0; g < ends.size(); ++g) {
        const std::int64_t size = ends[g] - (g == 0 ? 0 : ends[g - 1]);
        starts.push_back(static_cast<std::int32_t>(below(random, rows - size + 1)));
      }
      inputs[decl.name] = words(starts);
      continue;
    }
    if (decl.name == "s" && decl.dtype == DType::fp32) {
      inputs[decl.name] = random_tensor(decl.dtype, decl.shape, random);
      continue;
    }
    HostTensor tensor{.dtype = decl.dtype, .shape = decl.shape, .bytes = {}};
    tensor.bytes.resize(static_cast<std::size_t>(tensor.elements()) * size_of(decl.dtype));
    for (std::uint8_t& byte : tensor.bytes) byte = static_cast<std::uint8_t>(random());
    inputs[decl.name] = std::move(tensor);
  }
  return inputs;
}

TensorMap any_inputs(const Problem& problem, Random& random) {
  const bool quantize = std::holds_alternative<problem::Quantize>(problem.op);
  return quantize ? make_inputs(problem, random) : ops_inputs(problem, random);
}

TensorMap comparable(const Problem& problem, TensorMap outputs) {
  const bool quantize = std::holds_alternative<problem::Quantize>(problem.op);
  return quantize ? std::move(outputs) : with_one_nan(std::move(outputs));
}

TensorMap with_one_nan(TensorMap tensors) {
  for (auto& [name, tensor] : tensors) {
    if (tensor.dtype != DType::fp32) continue;
    for (std::size_t at = 0; at < tensor.bytes.size(); at += sizeof(std::uint32_t)) {
      std::uint32_t bits = 0;
      std::memcpy(&bits, tensor.bytes.data() + at, sizeof bits);
      if ((bits & 0x7FFFFFFF) <= 0x7F800000) continue;
      bits = 0x7FFFFFFF;
      std::memcpy(tensor.bytes.data() + at, &bits, sizeof bits);
    }
  }
  return tensors;
}

}  // namespace mxjit::device
