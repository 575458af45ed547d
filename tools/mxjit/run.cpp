// mxjit run: one problem on real tensors.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>

#include "mxjit/command.hpp"
#include "mxjit/device.hpp"
#include "mxjit/error.hpp"
#include "mxjit/execute.hpp"
#include "mxjit/files.hpp"
#include "mxjit/report.hpp"
#include "safetensors/safetensors.hpp"

namespace mxjit::cli {
namespace {

struct RunOptions {
  std::string problem, in, out;
  DeviceChoice device;
};

nlohmann::ordered_json describe(const TensorMap& tensors) {
  nlohmann::ordered_json result = nlohmann::ordered_json::object();
  for (const auto& [name, tensor] : tensors)
    result[name] = {{"dtype", to_string(tensor.dtype)}, {"shape", tensor.shape}};
  return result;
}

int run(const RunOptions& options, const CommonOptions& common) {
  check_output(options.out, {options.in, options.problem});
  const problem::Problem problem = load_problem(options.problem);
  if (!problem::is_concrete(problem))
    throw Error(ErrorCode::invalid_argument,
                fmt::format("\"{}\": an extent is a range; run takes numbers", options.problem), "PROBLEM");
  safetensors::File in = load_tensors(options.in);
  const std::vector<std::string> ignored = check_inputs(problem, in.tensors);
  for (const std::string& name : ignored) in.tensors.erase(name);
  if (!ignored.empty()) note(fmt::format("not read by this problem: {}", fmt::join(ignored, ", ")));

  Executor executor(options.device, cache_options(common));
  Executed executed = executor.run(problem, in.tensors);
  const safetensors::File out{std::move(executed.outputs), {}};
  safetensors::write(options.out, out);
  note(fmt::format("ran on {}", executed.device));

  const Statistics statistics = executor.statistics();
  if (common.json)
    print_json({{"device", executed.device},
                {"compiled", statistics.compiles},
                {"hits", statistics.hits()},
                {"statistics", to_json(statistics)},
                {"outputs", describe(out.tensors)}});
  return exit_done;
}

}  // namespace

void add_run(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* command = add_command(
      app, invocation, "run", "Run one problem on real tensors",
      "IN holds the problem's inputs under the names of the problem file's op (quantize: x; dequantize: q,\n"
      "s; ...); tensors it does not read are left out, and a note names them. OUT is published whole or\n"
      "not at all, and is never one of the inputs.\n\n"
      "Examples:\n"
      "  mxjit run quantize.json x.safetensors q.safetensors\n"
      "  mxjit run quantize.json x.safetensors q.safetensors --device cpu --json",
      [options](const CommonOptions& common) { return run(*options, common); });
  command->add_option("PROBLEM", options->problem, "Problem file (JSON)")->required();
  command->add_option("IN", options->in, "Input tensors (safetensors)")->required();
  command->add_option("OUT", options->out, "Output tensors (safetensors)")->required();
  add_device_option(*command, options->device);
}

}  // namespace mxjit::cli
