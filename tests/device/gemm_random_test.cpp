// GEMM problems of chance against the fp64 reference, between guard zones, on dirty outputs, from several
// threads: MXJIT_DEVICE_GEMMS of them, on a bounded number of kernels.
#include <algorithm>
#include <array>
#include <bit>

#include "device/gemm_compare.hpp"
#include "device/random_problems.hpp"
#include "reference/reference.hpp"

namespace mxjit::device {
namespace {

using problem::Gemm;

constexpr std::uint64_t gemm_seed = 20240301;

template <class Value, std::size_t count>
Value pick(const std::array<Value, count>& values, Random& random) {
  return values[random() % count];
}

bool one_in(unsigned n, Random& random) { return random() % n == 0; }

bool is_mx(const problem::Operand& operand) {
  return operand.scaling && operand.scaling->kind == Scaling::mx;
}

// M, N or K: 0 now and then, 1, primes, what tiles and blocks are multiples of, and their neighbours.
std::int64_t gemm_extent(Random& random, std::int64_t most) {
  constexpr std::array<std::int64_t, 26> all = {1,   2,   3,   7,   13,  16,  17,  31,  32,
                                                61,  64,  65,  97,  127, 128, 129, 151, 191,
                                                192, 211, 256, 257, 272, 307, 384, 509};
  if (one_in(50, random)) return 0;
  for (;;)
    if (const std::int64_t drawn = pick(all, random); drawn <= most) return drawn;
}

problem::Recipe requantization(Random& random) {
  problem::Recipe recipe{.format = DType::e4m3,
                         .scaling = Scaling::mx,
                         .block = {},
                         .rounding = Rounding::rceil,
                         .scale_layout = ScaleLayout::plain,
                         .amax_cap = {}};
  if (one_in(2, random)) {
    recipe.rounding =
        pick(std::array{Rounding::rceil, Rounding::floor, Rounding::ceil, Rounding::even}, random);
    if (one_in(2, random)) recipe.scale_layout = ScaleLayout::blocked;
    return recipe;
  }
  recipe.scaling = Scaling::fp32;
  recipe.block = {.rows = 1, .cols = 128};
  recipe.rounding = pick(std::array{Rounding::none, Rounding::pow2}, random);
  if (one_in(2, random)) recipe.scale_layout = ScaleLayout::mn_major;
  if (one_in(3, random)) recipe.amax_cap = 3.0;
  return recipe;
}

// Two of three for the Hopper kernel, the others anything.
Gemm any_gemm_kind(Random& random) {
  constexpr std::array all = {"none",    "tensor",          "row",       "k",
                              "128",     "128 mn",          "128x128",   "128x128 mn",
                              "mx32",    "mx32 blocked",    "mx128",     "mx128 blocked",
                              "mx32x32", "mx32x32 blocked", "mx128x128", "mx128x128 blocked"};
  constexpr std::array of_a = {"none", "tensor", "row", "128", "128 mn", "128x128"};
  constexpr std::array of_b = {"none", "tensor", "row", "128x128"};
  const bool hopper = !one_in(3, random);
  const char *const a = hopper ? pick(of_a, random) : pick(all, random), *const b = hopper
                                                                                        ? pick(of_b, random)
                                                                                        : pick(all, random);
  Gemm gemm = make_gemm(
      1, 1, 1, a, b, pick(std::array{Accumulation::promote, Accumulation::fast, Accumulation::exact}, random),
      pick(std::array{DType::bf16, DType::fp16, DType::fp32, DType::e4m3}, random));
  for (problem::Operand* operand : {&gemm.a, &gemm.b}) {
    operand->tensor.dtype = pick(std::array{DType::e4m3, DType::e4m3, DType::e5m2}, random);
    if (hopper) continue;
    if (one_in(4, random)) operand->tensor.dtype = DType::bf16;
    operand->mn_major = one_in(2, random);
  }
  if (hopper && gemm.accumulation == Accumulation::exact) gemm.accumulation = Accumulation::promote;
  const auto slow = [](const problem::Operand& operand) {
    return is_mx(operand) || operand.tensor.dtype == DType::bf16;
  };
  if (gemm.accumulation == Accumulation::fast && (slow(gemm.a) || slow(gemm.b)))
    gemm.accumulation = Accumulation::promote;
  const bool e4m3 = gemm.d.tensor.dtype == DType::e4m3;
  if (e4m3 && one_in(2, random)) gemm.d.requant = requantization(random);
  if (one_in(3, random)) {
    gemm.epilogue = problem::Swiglu{.interleave = one_in(2, random), .alpha = 1.0, .limit = {}};
    if (one_in(2, random)) gemm.epilogue->alpha = 1.702, gemm.epilogue->limit = 3.0;
  }
  if (one_in(3, random)) gemm.bias = pick(std::array{DType::bf16, DType::fp16, DType::fp32}, random);
  if (!e4m3 && !gemm.epilogue && one_in(3, random)) gemm.beta = -0.75;
  gemm.alpha =
      gemm.epilogue || e4m3 ? 0x1p-5 : 1.25;  // gates of a few units, codes most of which do not saturate
  gemm.d.amax = one_in(4, random) && !(hopper && (gemm.bias || gemm.beta != 0.0));
  gemm.batch_invariant = one_in(4, random);
  return gemm;
}

// An even N: two of three such as the Hopper kernel takes gates and ups in.
std::int64_t whole_gates(const Gemm& gemm, std::int64_t n, Random& random) {
  const bool two_blocks = !gemm.epilogue->interleave && gemm.b.scaling == scaling("128x128");
  const std::int64_t unit = one_in(3, random) ? 2 : two_blocks ? 256 : 16;
  return (n + unit - 1) / unit * unit;
}

// Extents, a batch, pitches and bases for a problem of this kind; mostly such as the Hopper kernel takes,
// some of those such as it stores in bulk.
RandomCase placed(Gemm gemm, Random& random) {
  const std::int64_t most = small() ? 160 : 400;
  const std::int64_t m = gemm_extent(random, most);
  std::int64_t n = gemm_extent(random, most), k = gemm_extent(random, small() ? 300 : 600);
  if (one_in(3, random)) n = (n + 15) / 16 * 16, k = (k + 15) / 16 * 16;
  if (gemm.epilogue) n = whole_gates(gemm, n, random);
  gemm.a.tensor.shape = {m, k};
  gemm.b.tensor.shape = {n, k};
  if (one_in(4, random)) {
    const std::int64_t batch = one_in(20, random) ? 0 : 2 + below(random, 2);
    const unsigned shared = static_cast<unsigned>(random() % 3);
    gemm.a.tensor.shape.insert(gemm.a.tensor.shape.begin(), shared == 1 ? 1 : batch);
    gemm.b.tensor.shape.insert(gemm.b.tensor.shape.begin(), shared == 2 ? 1 : batch);
  }
  Placement placement{.dirt = static_cast<std::uint8_t>(random())};
  switch (random() % 6) {
    case 0:
      placement.extra_pitch = below(random, 40);
      placement.shift = below(random, 17);
      break;
    case 1:  // packed
      break;
    default:
      placement.extra_pitch = (16 - k % 16) % 16 + 16 * below(random, 2);
      placement.shift = 16 * below(random, 2);
  }
  // What the kernels are chosen by, said beforehand.
  const auto promise = [&](problem::TensorSpec& tensor, std::int64_t columns) {
    const auto element = static_cast<std::int64_t>(size_of(tensor.dtype));
    tensor.ld = columns + placement.extra_pitch;
    const auto places = static_cast<std::uint64_t>((*tensor.ld | placement.shift) * element);
    tensor.align = 1 << std::min(4, std::countr_zero(places));
  };
  promise(gemm.a.tensor, gemm.a.mn_major ? m : k);
  promise(gemm.b.tensor, gemm.b.mn_major ? n : k);
  promise(gemm.d.tensor, gemm.epilogue ? n / 2 : n);
  return {whole(gemm), placement};
}

RandomCase any_gemm(Random& random) { return placed(any_gemm_kind(random), random); }

RandomCase gemm_like(const RandomCase& kind, Random& random) {
  Gemm gemm = std::get<Gemm>(kind.problem.op);
  gemm.d.tensor.shape.clear();
  gemm.bias_pitch = {};
  return placed(gemm, random);
}

// A NaN or an infinity somewhere in an operand.
void put_special(const problem::Operand& operand, HostTensor& tensor, Random& random) {
  if (tensor.bytes.empty()) return;
  const std::size_t element = size_of(tensor.dtype),
                    at = random() % (tensor.bytes.size() / element) * element;
  const bool infinite = one_in(2, random) && operand.tensor.dtype != DType::e4m3;
  switch (operand.tensor.dtype) {
    case DType::e5m2:
      tensor.bytes[at] = infinite ? 0x7C : 0x7F;
      break;
    case DType::bf16:
      tensor.bytes[at] = infinite ? 0x80 : 0xC0;
      tensor.bytes[at + 1] = 0x7F;
      break;
    default:
      tensor.bytes[at] = 0x7F;
  }
}

TEST_F(RandomProblems, GemmsAreCloseToTheReference) {
  Sampler sampler(gemm_seed, any_gemm, gemm_like);
  run_random(sampler, problems_asked_for("MXJIT_DEVICE_GEMMS"),
             [](const RandomCase& drawn, std::uint64_t number) {
               Random random(gemm_seed + number);
               const auto& gemm = std::get<Gemm>(drawn.problem.op);
               TensorMap inputs = gemm_inputs(drawn.problem, random);
               if (one_in(2, random)) scale_rows(gemm, inputs, random);
               if (one_in(4, random)) put_special(gemm.a, inputs.at("a"), random);
               if (one_in(8, random)) put_special(gemm.b, inputs.at("b"), random);
               const TensorMap want = reference::run(drawn.problem, inputs);
               const std::string difference =
                   gemm_difference(gemm, inputs, run_guarded(drawn.problem, inputs, drawn.placement), want);
               EXPECT_EQ(difference, "");
               return difference.empty();
             });
}

}  // namespace
}  // namespace mxjit::device
