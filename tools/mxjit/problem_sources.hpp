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

  bool empty() const { return model.empty() && problems.empty() && traces.empty(); }
  /// Reads them all; `argument` is what the command calls its problem files. Throws Error(invalid_argument)
  /// naming the option, the file and what is wrong in it.
  std::vector<problem::Problem> gather(const std::string& argument) const;
};

/// Adds --model, --trace and the sizes of a model. Problem files are the command's own.
void add_source_options(CLI::App& command, ProblemSources& sources);

}  // namespace mxjit::cli
