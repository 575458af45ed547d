#include "bench/bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <string_view>
#include <vector>

#include "bench/suites.hpp"
#include "mxjit/error.hpp"
#include "source_digest.hpp"

namespace mxjit::bench {
namespace {

/// Suites of ops that have no executable kernels yet: named, so that their absence is told from a
/// misspelling.
constexpr std::array<std::string_view, 3> later_suites = {"gemm_mx", "grouped", "moe"};

std::string suite_names() {
  std::vector<std::string_view> names;
  for (const Suite& suite : suites()) names.push_back(suite.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

const Suite& find_suite(const std::string& name) {
  for (const Suite& suite : suites()) {
    if (suite.name == name) return suite;
  }
  if (std::find(later_suites.begin(), later_suites.end(), name) != later_suites.end()) {
    throw Error(ErrorCode::unsupported,
                fmt::format("SUITE: '{}' measures an op that this version does not execute; it has {}", name,
                            suite_names()),
                "SUITE");
  }
  throw Error(ErrorCode::invalid_argument,
              fmt::format("SUITE: expected one of {}, got '{}'", suite_names(), name), "SUITE");
}

void write_file(const std::filesystem::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (!file) throw Error(ErrorCode::io, fmt::format("{} could not be written", path.string()), "--out");
}

/// Made before anything is measured: a folder that cannot be made must not cost a run.
void make_folder(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (!std::filesystem::is_directory(folder)) {
    throw Error(ErrorCode::io,
                fmt::format("--out: {} is no folder and none could be made there: {}", folder.string(),
                            error.message()),
                "--out");
  }
}

}  // namespace

int bench_command(const BenchOptions& options) {
  const Suite& suite = find_suite(options.suite);
  if (!options.only.empty() && !suite.chooses)
    throw Error(ErrorCode::invalid_argument, fmt::format("--only: {} has no rows to choose from", suite.name),
                "--only");
  if (!options.out.empty()) make_folder(options.out);

  Result result = suite.run(options);
  result.suite = suite.name;
  result.digest = source_digest;
  if (options.quick) result.notes.emplace_back("Quick run: few samples, not a measurement.");

  const std::string json = to_json(result);
  if (!options.out.empty()) {
    write_file(options.out / (options.suite + ".json"), json);
    write_file(options.out / (options.suite + ".md"), to_markdown(result));
  }
  std::fputs(options.json ? json.c_str() : to_text(result).c_str(), stdout);

  int status = 0;
  for (const Row& row : result.rows) {
    if (row.correct) continue;
    status = 1;
    fmt::print(stderr, "bench {}: {} {}: not correct. {}\n", options.suite, row.name,
               fmt::join(row.shape, "x"), row.difference);
  }
  return status;
}

}  // namespace mxjit::bench
