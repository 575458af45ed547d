// Kernels compiled into a cache, several at a time.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "cache/cache.hpp"
#include "mxjit/prewarm_plan.hpp"

namespace mxjit::cli {

struct Failure {
  std::string key, problem, message;
};

struct Tally {
  std::uint64_t compiled = 0, hits = 0, bytes = 0;
  std::set<std::string> spilled;  // keys of kernels that spill registers
  std::vector<Failure> failures;
};

/// One a core, and no more than the free memory holds.
unsigned default_threads();
/// Adds `-j, --jobs`; 0 where none is given.
void add_jobs_option(CLI::App& command, unsigned& threads);

/// Shows progress. Throws what stops every compilation: no NVRTC, no room.
Tally compile_kernels(cache::Cache& cache, const std::vector<PlannedKernel>& kernels, unsigned threads);

}  // namespace mxjit::cli
