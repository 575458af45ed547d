// Problems of chance, many of them on few kernels, run from several threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <utility>
#include <vector>

#include "configure/configuration.hpp"
#include "device/guarded.hpp"
#include "device/machine.hpp"
#include "device/problems.hpp"

namespace mxjit::device {

class RandomProblems : public DeviceTest {};

/// A problem and how its tensors lie.
struct RandomCase {
  problem::Problem problem;
  Placement placement;
};

/// Draws cases that together need no more than 300 kernels: first of any kind, then others like those.
class Sampler {
 public:
  using Draw = std::function<RandomCase(Random&)>;
  using Like = std::function<RandomCase(const RandomCase&, Random&)>;
  Sampler(std::uint64_t seed, Draw draw, Like like)
      : random_(seed), draw_(std::move(draw)), like_(std::move(like)) {}

  RandomCase next();
  std::size_t kernels() const { return kernels_.size(); }

 private:
  bool fits(const problem::Problem& problem);

  static constexpr std::size_t most_ = 300;
  Random random_;
  Draw draw_;
  Like like_;
  std::vector<RandomCase> kinds_;
  std::set<configure::Configuration> kernels_;
};

/// The number that environment variable `name` holds, or else 300, or 12 where sizes are to be small.
std::size_t problems_asked_for(const char* name);

/// Draws `count` cases, compiles their kernels and calls `holds(case, number)` for each, which says whether
/// it held, having added a failure where not. Every thread has a stream of its own. Ends early after many
/// failures.
void run_random(Sampler& sampler, std::size_t count,
                const std::function<bool(const RandomCase&, std::uint64_t)>& holds);

}  // namespace mxjit::device
