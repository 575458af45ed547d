// Problems of chance of every op but gemm against the reference, between guard zones, on dirty outputs, from
// several threads: MXJIT_DEVICE_PROBLEMS of them, on a bounded number of kernels.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <set>
#include <thread>
#include <vector>

#include "codegen/descriptor.hpp"
#include "configure/configure.hpp"
#include "device/backend.hpp"
#include "device/guarded.hpp"
#include "device/machine.hpp"
#include "device/ops_problems.hpp"
#include "device/problems.hpp"
#include "reference/reference.hpp"

namespace mxjit::device {
namespace {

using problem::Problem;

class RandomProblems : public DeviceTest {};

constexpr std::uint64_t seed = 20240229;
constexpr std::size_t most_kernels = 300;

bool is_quantization(const Problem& problem) { return std::holds_alternative<problem::Quantize>(problem.op); }

/// Draws problems that together need no more than so many kernels: first of any kind, then other shapes of
/// those.
class Sampler {
 public:
  explicit Sampler(std::size_t kernels) : most_(kernels) {}

  Problem next() {
    for (;;) {
      const bool another = kernels_.size() + 2 < most_ && (kinds_.empty() || random_() % 2 == 0);
      Problem problem = another ? of_any_kind() : like(kinds_[random_() % kinds_.size()]);
      if (!fits(problem)) continue;
      if (another) kinds_.push_back(problem);
      return problem;
    }
  }
  std::size_t kernels() const { return kernels_.size(); }

 private:
  Problem of_any_kind() { return random_() % 3 == 0 ? random_op(random_) : random_quantization(random_); }

  Problem like(const Problem& kind) {
    if (is_quantization(kind)) return with_other_extents(kind, random_);
    return problem::with_defaults(op_of_other_extents(kind, random_));
  }

  bool fits(const Problem& problem) {
    const configure::Profile& profile = dispatch::ContextAccess::state(Machine::get().context()).profile;
    std::vector<configure::Configuration> fresh;
    for (configure::Configuration& configuration : configure::configure(problem, profile))
      if (!kernels_.contains(configuration)) fresh.push_back(std::move(configuration));
    if (kernels_.size() + fresh.size() > most_) return false;
    kernels_.insert(fresh.begin(), fresh.end());
    return true;
  }

  std::size_t most_;
  Random random_{seed};
  std::vector<Problem> kinds_;
  std::set<configure::Configuration> kernels_;
};

bool same(const TensorMap& a, const TensorMap& b) {
  return std::ranges::equal(a, b, [](const auto& x, const auto& y) {
    return x.first == y.first && x.second.shape == y.second.shape && x.second.bytes == y.second.bytes;
  });
}

/// False where it differs, having said so.
bool run_one(const Problem& problem, std::uint64_t number) {
  Random random(seed + number);
  const Placement placement{.extra_pitch = random() % 3 == 0 ? static_cast<std::int64_t>(random() % 50) : 0,
                            .shift = random() % 3 == 0 ? static_cast<int>(random() % 17) : 0,
                            .dirt = static_cast<std::uint8_t>(random())};
  SCOPED_TRACE(testing::Message() << "problem " << number << ", extra pitch " << placement.extra_pitch
                                  << ", shift " << placement.shift << ": " << problem::print(problem));
  try {
    const TensorMap inputs = any_inputs(problem, random);
    const TensorMap expected = comparable(problem, reference::run(problem, inputs));
    const TensorMap got = comparable(problem, run_guarded(problem, inputs, placement));
    expect_equal(got, expected);
    return same(got, expected);
  } catch (const std::exception& error) {
    ADD_FAILURE() << error.what();
    return false;
  }
}

std::size_t problems_asked_for() {
  const char* asked = std::getenv("MXJIT_DEVICE_PROBLEMS");
  if (asked != nullptr && *asked != '\0') return static_cast<std::size_t>(std::atoll(asked));
  return small() ? 12 : 300;
}

TEST_F(RandomProblems, EqualTheReference) {
  Sampler sampler(most_kernels);
  std::vector<Problem> problems;
  for (std::size_t i = problems_asked_for(); i > 0; --i) problems.push_back(sampler.next());
  prewarm(problems);
  std::atomic<std::size_t> next{0}, differing{0};
  constexpr std::size_t enough = 20;  // failures
  const auto work = [&] {
    const OwnStream stream;
    for (std::size_t i = next++; i < problems.size() && differing < enough; i = next++)
      if (!run_one(problems[i], i)) ++differing;
  };
  const unsigned workers = backend_is_slow() ? 1 : std::max(1U, std::thread::hardware_concurrency());
  {
    std::vector<std::jthread> threads;
    for (unsigned i = 1; i < workers; ++i) threads.emplace_back(work);
    work();
  }
  RecordProperty("problems", static_cast<int>(problems.size()));
  RecordProperty("kernels", static_cast<int>(sampler.kernels()));
  RecordProperty("threads", static_cast<int>(workers));
}

}  // namespace
}  // namespace mxjit::device
