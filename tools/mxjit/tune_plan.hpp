// What a tuning run measures: each class of GEMM problems once, with the tiles that can be its fastest.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "configure/tuning_table.hpp"
#include "mxjit/prewarm_plan.hpp"
#include "problem/problem.hpp"

namespace mxjit::cli {

struct TuneJob {
  std::string title;      // of the first problem of this class
  problem::Gemm problem;  // of a batch, with one matrix
  configure::GemmTraits traits;
  std::int64_t m = 0, n = 0, k = 0;
  int model = 0;           // the cost model's choice
  std::vector<int> tiles;  // it and the others, as indices in gemm_tiles
  std::vector<Kernel> kernels;
};

struct TunePlan {
  std::vector<TuneJob> jobs;
  std::vector<UnsupportedProblem> skipped;  // with the reason; `targets` is the one target

  /// Every kernel once.
  std::vector<PlannedKernel> kernels() const;
};

/// `rows`: M of problems with a range of it, those inside the range; empty: powers of two and the range's
/// largest. A tile that the model gives more than twice the time of its choice is left out.
TunePlan plan_tuning(const std::vector<problem::Problem>& problems, const configure::Profile& profile,
                     const std::vector<std::int64_t>& rows);

}  // namespace mxjit::cli
