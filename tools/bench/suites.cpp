#include "bench/suites.hpp"

#include <fmt/format.h>

#include <array>
#include <regex>

#include "mxjit/error.hpp"

namespace mxjit::bench {

std::span<const Suite> suites() {
  static constexpr std::array<Suite, 5> all = {
      Suite{"dispatch", run_dispatch}, Suite{"compile", run_compile}, Suite{"quantize", run_quantize, true},
      Suite{"gemm", run_gemm, true}, Suite{"overlap", run_overlap, true}};
  return all;
}

bool is_chosen(const BenchOptions& options, const std::string& title) {
  if (options.only.empty()) return true;
  try {
    return std::regex_search(title, std::regex(options.only));
  } catch (const std::regex_error& error) {
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("--only: expected a regular expression, got '{}': {}", options.only, error.what()),
        "--only");
  }
}

void refuse_choice(const BenchOptions& options) {
  throw Error(ErrorCode::invalid_argument,
              fmt::format("--only: expected what some row's name and shape hold, got '{}'", options.only),
              "--only");
}

}  // namespace mxjit::bench
