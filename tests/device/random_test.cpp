// Problems of chance of every op but gemm against the reference, between guard zones, on dirty outputs, from
// several threads: MXJIT_DEVICE_PROBLEMS of them, on a bounded number of kernels.
#include <algorithm>

#include "device/ops_problems.hpp"
#include "device/random_problems.hpp"
#include "reference/reference.hpp"

namespace mxjit::device {
namespace {

using problem::Problem;

constexpr std::uint64_t seed = 20240229;

bool is_quantization(const Problem& problem) { return std::holds_alternative<problem::Quantize>(problem.op); }

Placement any_placement(Random& random) {
  return {.extra_pitch = random() % 3 == 0 ? static_cast<std::int64_t>(random() % 50) : 0,
          .shift = random() % 3 == 0 ? static_cast<int>(random() % 17) : 0,
          .dirt = static_cast<std::uint8_t>(random())};
}

RandomCase any_case(Random& random) {
  return {random() % 3 == 0 ? random_op(random) : random_quantization(random), any_placement(random)};
}

RandomCase case_like(const RandomCase& kind, Random& random) {
  return {is_quantization(kind.problem) ? with_other_extents(kind.problem, random)
                                        : problem::with_defaults(op_of_other_extents(kind.problem, random)),
          any_placement(random)};
}

bool same(const TensorMap& a, const TensorMap& b) {
  return std::ranges::equal(a, b, [](const auto& x, const auto& y) {
    return x.first == y.first && x.second.shape == y.second.shape && x.second.bytes == y.second.bytes;
  });
}

TEST_F(RandomProblems, EqualTheReference) {
  Sampler sampler(seed, any_case, case_like);
  run_random(sampler, problems_asked_for("MXJIT_DEVICE_PROBLEMS"),
             [](const RandomCase& drawn, std::uint64_t number) {
               Random random(seed + number);
               const auto& [problem, placement] = drawn;
               const TensorMap inputs = any_inputs(problem, random);
               const TensorMap expected = comparable(problem, reference::run(problem, inputs));
               const TensorMap got = comparable(problem, run_guarded(problem, inputs, placement));
               expect_equal(got, expected);
               return same(got, expected);
             });
}

}  // namespace
}  // namespace mxjit::device
