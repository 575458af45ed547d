// A prewarm of a range of dequantize, pack_scales, pad_groups or an inverse holds the kernel of every call
// inside the range; a key of such calls stands for one kernel.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>

#include "configure/configure.hpp"
#include "dispatch/dequantize_call.hpp"
#include "dispatch/pack_call.hpp"
#include "dispatch/pad_call.hpp"
#include "loops.hpp"
#include "mxjit/error.hpp"
#include "property/problem_generator.hpp"

namespace mxjit {
namespace {

using configure::Configuration;
using dispatch::OpCall;
using dispatch::OpKey;
using problem::Problem;

// The tensors of a concrete problem, apart from each other, at addresses that nothing reads.
std::map<std::string, Tensor> tensors_of(const Problem& problem) {
  std::map<std::string, Tensor> all;
  std::uintptr_t address = std::uintptr_t{1} << 40;
  for (const problem::TensorDecl& decl : problem::tensors(problem)) {
    Tensor tensor{.data = reinterpret_cast<void*>(address),
                  .dtype = decl.dtype,
                  .rank = static_cast<int>(decl.shape.size())};
    std::copy(decl.shape.begin(), decl.shape.end(), tensor.shape.begin());
    all[decl.name] = tensor;
    address += std::uintptr_t{1} << 52;
  }
  return all;
}

struct Seen {
  std::map<OpKey, Configuration> kernels;
  int calls = 0;

  void see(const OpCall& call, const Configuration& prewarmed) {
    ASSERT_NO_THROW(call.check());
    const Configuration chosen = call.configuration();
    ASSERT_EQ(chosen, prewarmed);
    const auto [at, added] = kernels.emplace(call.key(), chosen);
    ASSERT_EQ(at->second, chosen);
    ++calls;
  }
};

struct Call {
  Seen& seen;
  const Problem& problem;
  const Configuration& prewarmed;

  void operator()(const problem::Dequantize& op) const {
    auto t = tensors_of(problem);
    DequantizeOptions options{
        .scaling = op.scaling, .block = op.block, .scale_layout = op.scale_layout, .axis_col = op.axis_col};
    if (op.groups) options.groups = {static_cast<std::int32_t>(op.groups->count), op.groups->alignment};
    const DequantizeArgs args{.q = t["q"], .s = t["s"], .x = t["x"], .offsets = t["offsets"]};
    seen.see(dispatch::DequantizeCall(options, args), prewarmed);
  }
  void operator()(const problem::PackScales& op) const {
    auto t = tensors_of(problem);
    const PackScalesOptions options{op.placement, static_cast<std::int32_t>(op.groups.value_or(0))};
    const PackScalesArgs args{.s = t["s"], .s_blocked = t["s_blocked"], .offsets = t["offsets"]};
    seen.see(dispatch::PackCall(op.unpack, options, args), prewarmed);
  }
  void operator()(const problem::PadGroups& op) const {
    auto t = tensors_of(problem);
    const PadGroupsOptions options{static_cast<std::int32_t>(op.groups), op.alignment};
    if (op.unpad) {
      const UnpadGroupsArgs args{
          .x_padded = t["x_padded"], .offsets = t["offsets"], .starts = t["starts"], .x = t["x"]};
      seen.see(dispatch::PadCall(options, args), prewarmed);
    } else {
      const PadGroupsArgs args{.x = t["x"],
                               .offsets = t["offsets"],
                               .x_padded = t["x_padded"],
                               .starts = t["starts"],
                               .ends = t["ends"]};
      seen.see(dispatch::PadCall(options, args), prewarmed);
    }
  }
  void operator()(const auto&) const { FAIL() << "another op"; }
};

void draw(problem::Shape& shape, std::mt19937_64& random) {
  for (problem::Extent& extent : shape) {
    constexpr std::int64_t most = 1 << 16;
    const std::int64_t low = std::min(extent.min, most), high = std::min(extent.max, most);
    extent = std::uniform_int_distribution<std::int64_t>(low, high)(random);
  }
}

TEST(PrewarmProperty, RangesOfOpsOfOneKernelAreComplete) {
  constexpr std::uint64_t seed = 20261131;
  problem::ProblemGenerator generator(seed);
  std::mt19937_64 random(seed);
  Seen seen;
  while (seen.calls < 3000 / test::stride(4)) {
    Problem range = generator.any();
    Problem drawn = range;
    if (auto* op = std::get_if<problem::Dequantize>(&drawn.op)) {
      if (op->groups && op->groups->count > 1024) continue;
      op->q.ld.reset(), op->q.align.reset(), op->output_pitch = {};
      draw(op->q.shape, random);
    } else if (auto* pack = std::get_if<problem::PackScales>(&drawn.op)) {
      if (pack->groups && *pack->groups > 1024) continue;
      pack->pitch = {};
      draw(pack->shape, random);
    } else if (auto* pad = std::get_if<problem::PadGroups>(&drawn.op)) {
      if (pad->groups > 1024) continue;
      pad->input.ld.reset(), pad->input.align.reset();
      draw(pad->input.shape, random);
    } else {
      continue;
    }
    const auto prewarmed = configure::configure(range, configure::default_profile("sm_90a"));
    ASSERT_EQ(prewarmed.size(), 1U);
    SCOPED_TRACE(problem::print(drawn));
    std::visit(Call{seen, drawn, prewarmed.front()}, drawn.op);
    if (HasFailure()) return;
  }
  EXPECT_GT(seen.kernels.size(), 100U / test::stride(4));
}

}  // namespace
}  // namespace mxjit
