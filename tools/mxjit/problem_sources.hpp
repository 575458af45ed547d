// Where a command takes its problems from: a model, problem files, traces.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "problem/model.hpp"
#include "problem/problem.hpp"

namespace mxjit::cli {

struct ProblemSources {
  std::string model;
  std::vector<std::string> problems, traces;
  problem::ModelOptions sizes;

  /// Reads them all. Throws Error(invalid_argument) naming the option, the file and what is wrong in it, and
  /// where there is no source.
  std::vector<problem::Problem> gather() const;
};

/// Adds PROBLEM... (or --problems), --model, --trace and the sizes of a model. `ranges`: which extents of a
/// problem file may be one.
void add_source_options(CLI::App& command, ProblemSources& sources, const std::string& ranges);

}  // namespace mxjit::cli
