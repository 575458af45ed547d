#include "mxjit/problem_sources.hpp"

#include <fmt/format.h>

#include "mxjit/error.hpp"
#include "mxjit/files.hpp"

namespace mxjit::cli {

std::vector<problem::Problem> ProblemSources::gather() const {
  if (model.empty() && problems.empty() && traces.empty())
    throw Error(ErrorCode::invalid_argument, "problem files, --model config.json or --trace FILE is needed",
                "PROBLEM");
  std::vector<problem::Problem> all;
  if (!model.empty()) {
    const std::string text = read_text(model, "--model");
    try {
      for (problem::ModelProblem& found : problem::model_problems(text, sizes).problems)
        all.push_back(std::move(found.problem));
    } catch (const Error& error) {
      const bool of_file = error.argument().empty() || error.argument().starts_with('/');
      throw Error(error.code(), fmt::format("\"{}\": {}", model, error.what()),
                  of_file ? error.argument() : "--" + error.argument());
    }
  }
  for (const std::string& path : problems) all.push_back(load_problem(path));
  for (const std::string& path : traces)
    for (problem::Problem& problem : load_trace(path, "--trace")) all.push_back(std::move(problem));
  return all;
}

void add_source_options(CLI::App& command, ProblemSources& sources, const std::string& ranges) {
  command.add_option("PROBLEM,--problems", sources.problems, fmt::format("Problem files; {}", ranges))
      ->type_name("FILE");
  command.add_option("--model", sources.model, "A model's Hugging Face config.json")->type_name("FILE");
  command
      .add_option("--trace", sources.traces,
                  "Traces: problems that a process asked for, one JSON object a line (MXJIT_TRACE=FILE)")
      ->type_name("FILE");
  command.add_option("--max-tokens", sources.sizes.max_tokens, "Most tokens in a step")
      ->type_name("M")
      ->capture_default_str();
  command.add_option("--tp", sources.sizes.tp, "Tensor parallel size")->type_name("N")->capture_default_str();
  command.add_option("--ep", sources.sizes.ep, "Expert parallel size")->type_name("N")->capture_default_str();
}

}  // namespace mxjit::cli
