// The suites: each measures one thing and returns its rows.
#pragma once

#include <span>
#include <string_view>

#include "bench/bench.hpp"
#include "bench/result.hpp"

namespace mxjit::bench {

struct Suite {
  std::string_view name;
  Result (*run)(const BenchOptions& options);
  bool chooses = false;  // obeys `only`
};

// One function per suite, in the file of its name.
Result run_dispatch(const BenchOptions& options);
Result run_compile(const BenchOptions& options);
Result run_quantize(const BenchOptions& options);
Result run_gemm(const BenchOptions& options);
Result run_overlap(const BenchOptions& options);

/// Whether `only` finds the row of this "name shape".
bool is_chosen(const BenchOptions& options, const std::string& title);
/// Throws Error(invalid_argument): `only` finds nothing.
[[noreturn]] void refuse_choice(const BenchOptions& options);

/// The suites of this version.
std::span<const Suite> suites();

}  // namespace mxjit::bench
