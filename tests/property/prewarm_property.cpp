// What a prewarm of a range compiles holds every kernel that dispatch can choose for a call inside the range.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <set>
#include <vector>

#include "configure/configure.hpp"
#include "dispatch/gemm_key.hpp"
#include "dispatch/quantize_key.hpp"
#include "loops.hpp"
#include "mxjit/error.hpp"
#include "property/problem_generator.hpp"

namespace mxjit {
namespace {

using configure::Configuration;
using configure::Profile;
using problem::Extent;
using problem::Problem;

constexpr std::uint64_t kSeed = 20261130;

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed) {}
  std::int64_t in(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random_);
  }
  std::int64_t in(const Extent& extent) {
    // The ends more often than their share.
    const std::int64_t which = in(0, 3);
    return which == 0 ? extent.min : which == 1 ? extent.max : in(extent.min, extent.max);
  }
  Extent range() {
    const std::int64_t highest[] = {1, 3, 64, 200, 1000, 5000, 70000, 1 << 20, (std::int64_t{1} << 31) + 9};
    const std::int64_t high = in(0, highest[in(0, 8)]);
    return {in(0, 2) == 0 ? std::min<std::int64_t>(high, 1) : in(0, high), high};
  }

 private:
  std::mt19937_64 random_;
};

// Every M of a short range; of a long one the ends, both sides of each power of two and of each multiple of
// 64 up to 8192, and many more.
std::set<std::int64_t> samples(const Extent& m, Draw& draw) {
  std::set<std::int64_t> found{m.min, m.max};
  const auto add = [&](std::int64_t value) {
    if (value >= m.min && value <= m.max) found.insert(value);
  };
  for (std::int64_t i = 0; i <= 400; ++i) add(m.min + i);
  for (int bit = 0; bit < 40; ++bit)
    for (int off = -1; off <= 1; ++off) add((std::int64_t{1} << bit) + off);
  for (std::int64_t tile = 0; tile <= 8192; tile += 64)
    for (int off = -1; off <= 1; ++off) add(tile + off);
  for (int i = 0; i < 200; ++i) add(draw.in(m.min, m.max));
  return found;
}

const Profile& any_profile(Draw& draw) {
  const auto all = configure::profiles();
  return all[static_cast<std::size_t>(draw.in(0, static_cast<std::int64_t>(all.size()) - 1))];
}

// The kernels of a range, or none where this version executes it not.
std::set<Configuration> prewarmed(const Problem& problem, const Profile& profile) {
  try {
    const auto all = configure::configure(problem, profile);
    return {all.begin(), all.end()};
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported) << error.what();
    return {};
  }
}

Tensor tensor(DType dtype, const std::vector<std::int64_t>& shape, std::int64_t ld, std::uintptr_t address) {
  Tensor made{.data = reinterpret_cast<void*>(address),
              .dtype = dtype,
              .rank = static_cast<int>(shape.size()),
              .pitch = ld};
  std::copy(shape.begin(), shape.end(), made.shape.begin());
  return made;
}

TEST(PrewarmProperty, QuantizeRangesAreComplete) {
  std::cout << "seed " << kSeed << "\n";
  problem::ProblemGenerator generator(kSeed);
  Draw draw(kSeed);
  std::map<std::string, int> kernels, spans;
  int ranges = 0, calls = 0;
  while (ranges < 600 / test::stride(4)) {
    Problem problem = generator.any();
    auto* op = std::get_if<problem::Quantize>(&problem.op);
    if (op == nullptr || (op->groups && op->groups->count > 1024)) continue;
    const bool col = op->input_layout == problem::InputLayout::col;
    problem::Shape& shape = op->input.shape;
    const std::size_t at_m = shape.size() - 2, at_n = shape.size() - 1;
    shape[at_m] = draw.range();
    op->input.ld.reset();
    op->input.align.reset();
    const Profile& profile = any_profile(draw);
    const std::set<Configuration> all = prewarmed(problem, profile);
    if (all.empty()) continue;
    ++ranges;

    QuantizeOptions options{.format = op->recipe.format,
                            .scaling = op->recipe.scaling,
                            .block = op->recipe.block,
                            .rounding = op->recipe.rounding,
                            .scale_layout = op->recipe.scale_layout,
                            .axes = op->axes,
                            .transposed_input = col};
    options.emit_high = op->emit_high;
    QuantizeArgs args;
    if (const auto* swiglu = std::get_if<problem::Swiglu>(&op->pre)) {
      options.pre = swiglu->interleave ? Pre::swiglu_interleaved : Pre::swiglu;
      args.swiglu_limit = swiglu->limit;
    } else if (std::holds_alternative<problem::RmsNorm>(op->pre)) {
      options.pre = Pre::rmsnorm;
    }
    if (op->groups) options.groups = {static_cast<std::int32_t>(op->groups->count), op->groups->alignment};
    std::set<dispatch::QuantizeKey> keys;
    for (const std::int64_t m : samples(shape[at_m], draw)) {
      std::vector<std::int64_t> stored;
      for (const Extent& extent : shape) stored.push_back(draw.in(extent));
      stored[at_m] = m;
      if (col) std::swap(stored[at_m], stored[at_n]);
      args.x = tensor(op->input.dtype, stored, 0, 0x1000);
      keys.insert(dispatch::quantize_key(options, args));
    }
    for (const dispatch::QuantizeKey& key : keys)
      for (const Configuration& chosen : configure::configure(dispatch::quantize_problem(key), profile)) {
        ++calls;
        ++kernels[chosen.kernel];
        if (chosen.kernel == "quantize/rows")
          ++spans[std::get<std::string>(chosen.constants.at("span")) +
                  std::get<std::string>(chosen.constants.at("pre"))];
        ASSERT_TRUE(all.contains(chosen)) << profile.name << ", M bucket " << key.m_bucket << ", N " << key.n
                                          << ": " << problem::print(problem);
        // Rows on chip and tiles need no workspace, the others do.
        const bool counts = chosen.kernel == "quantize/norm" || chosen.kernel == "quantize/fp32_passes";
        EXPECT_EQ(workspace_size(options, args.x) > 0, counts) << problem::print(problem);
      }
  }
  EXPECT_GT(calls, 10 * ranges);
  EXPECT_GT(kernels["quantize/mx"], 0);
  for (const char* kind : {"Span::rowPre::none", "Span::rowPre::rmsnorm", "Span::blockPre::rmsnorm"})
    EXPECT_GT(spans[kind], 0) << kind;
}

// A tensor of `spec` in a call: `exactly` at an address that is a multiple of no more than promised.
Tensor placed(const problem::TensorSpec& spec, const std::vector<std::int64_t>& stored, bool exactly) {
  const std::int64_t ld = spec.ld.value_or(stored.back());
  const std::uintptr_t off =
      exactly && spec.align && *spec.align < 16 ? static_cast<std::uintptr_t>(*spec.align) : 0;
  return tensor(spec.dtype, stored, ld, 0x10000 + off);
}

TEST(PrewarmProperty, GemmRangesAreComplete) {
  std::cout << "seed " << kSeed + 1 << "\n";
  problem::ProblemGenerator generator(kSeed + 1);
  Draw draw(kSeed + 1);
  std::map<std::string, int> kernels;
  int ranges = 0;
  while (ranges < 600 / test::stride(4)) {
    Problem problem = generator.any();
    auto* op = std::get_if<problem::Gemm>(&problem.op);
    if (op == nullptr) continue;
    // Most generated options have no kernel yet; those that have one are drawn more often.
    op->groups.reset();
    if (op->a.tensor.shape.size() != op->b.tensor.shape.size()) continue;
    if (draw.in(0, 1) == 0) {  // the Hopper kernel's
      for (problem::Operand* operand : {&op->a, &op->b}) {
        operand->mn_major = false;
        operand->tensor.dtype = DType::e4m3;
        if (operand->scaling &&
            (operand->scaling->kind == Scaling::mx || operand->scaling->block.kind == Block::Kind::k))
          operand->scaling.reset();
      }
      if (op->accumulation == Accumulation::exact) op->accumulation = Accumulation::promote;
    }
    const std::size_t rank = op->a.tensor.shape.size();
    const Extent m = draw.range();
    op->a.tensor.shape[rank - 2] = m;
    if (draw.in(0, 2) > 0) {  // a usual N and K: both one number, or a short range
      const Extent k(draw.in(1, 40) * 64), n(draw.in(1, 40) * 48);
      op->a.tensor.shape[rank - 1] = op->b.tensor.shape[rank - 1] = k;
      op->b.tensor.shape[rank - 2] = n;
    }
    for (problem::TensorSpec* spec : {&op->a.tensor, &op->b.tensor, &op->d.tensor}) {
      spec->ld.reset();
      spec->align.reset();
      if (draw.in(0, 3) == 0) spec->align = static_cast<int>(size_of(spec->dtype));
    }
    op->bias_pitch = {};
    const Profile& profile = draw.in(0, 1) == 0 ? configure::profile("h200") : any_profile(draw);
    std::set<Configuration> all;
    try {
      problem::validate(problem);
      all = prewarmed(problem, profile);
    } catch (const Error&) {
      continue;  // what was changed does not go together
    }
    if (all.empty()) continue;
    ++ranges;

    GemmOptions options{.a_scale = {},
                        .b_scale = {},
                        .a_mn_major = op->a.mn_major,
                        .b_mn_major = op->b.mn_major,
                        .accumulation = op->accumulation,
                        .output = op->d.tensor.dtype,
                        .amax = op->d.amax,
                        .batch_invariant = op->batch_invariant};
    if (op->epilogue)
      options.epilogue = op->epilogue->interleave ? Epilogue::swiglu_interleaved : Epilogue::swiglu;
    if (op->d.requant)
      options.requant = Requant{op->d.requant->scaling, op->d.requant->block, op->d.requant->rounding,
                                op->d.requant->scale_layout};
    const auto scale = [](const problem::Operand& operand) -> std::optional<OperandScale> {
      if (!operand.scaling) return std::nullopt;
      return OperandScale{operand.scaling->kind, operand.scaling->block, operand.scaling->layout};
    };
    options.a_scale = scale(op->a);
    options.b_scale = scale(op->b);
    std::map<dispatch::GemmKey, dispatch::GemmSizes> keys;
    for (const std::int64_t rows : samples(m, draw)) {
      const std::int64_t n = draw.in(op->b.tensor.shape[rank - 2]), k = draw.in(op->a.tensor.shape[rank - 1]);
      if (rows == 0 || n == 0) continue;  // nothing is launched
      const std::int64_t columns = op->epilogue ? n / 2 : n;
      const auto stored = [&](std::int64_t outer, std::int64_t inner, bool turned) {
        std::vector<std::int64_t> shape = turned ? std::vector{inner, outer} : std::vector{outer, inner};
        if (rank == 3) shape.insert(shape.begin(), 2);
        return shape;
      };
      for (const bool exactly : {false, true}) {
        GemmArgs args{.a = placed(op->a.tensor, stored(rows, k, op->a.mn_major), exactly),
                      .a_scale = {},
                      .b = placed(op->b.tensor, stored(n, k, op->b.mn_major), exactly),
                      .b_scale = {},
                      .d = placed(op->d.tensor, stored(rows, columns, false), exactly),
                      .c = {},
                      .bias = {}};
        args.beta = static_cast<float>(op->beta);
        if (op->bias) args.bias = tensor(*op->bias, {n}, 0, 0x20000);
        const dispatch::GemmSizes sizes{.batch = 1, .m = rows, .n = n, .k = k};
        keys.emplace(dispatch::gemm_key(dispatch::gemm_traits(options, args), sizes, profile), sizes);
      }
    }
    for (const auto& [key, sizes] : keys) {
      const Configuration chosen = dispatch::gemm_configuration(key);
      ++kernels[chosen.kernel];
      if (op->epilogue) ++kernels[chosen.kernel + " with SwiGLU"];
      if (op->d.requant) ++kernels[chosen.kernel + " with blocks of D"];
      ASSERT_TRUE(all.contains(chosen))
          << profile.name << ", " << chosen.kernel << " for M " << sizes.m << ", N " << sizes.n << ", K "
          << sizes.k << ": " << problem::print(problem);
    }
  }
  EXPECT_GT(kernels["gemm/dense_fp8"], 150 / test::stride(4));
  EXPECT_GT(kernels["gemm/dense_fp8 with SwiGLU"], 40 / test::stride(4));
  EXPECT_GT(kernels["gemm/dense_fp8 with blocks of D"], 25 / test::stride(4));
  EXPECT_GT(kernels["gemm/general"], 200 / test::stride(4));
}

}  // namespace
}  // namespace mxjit
