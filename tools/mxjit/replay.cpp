// mxjit replay: the problems of a trace through the library, and what they took: compilations and loads.
#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <optional>

#include "dispatch/context_state.hpp"
#include "dispatch/replay.hpp"
#include "mxjit/command.hpp"
#include "mxjit/device.hpp"
#include "mxjit/error.hpp"
#include "mxjit/files.hpp"
#include "mxjit/kernels.hpp"
#include "mxjit/load.hpp"
#include "mxjit/progress.hpp"
#include "mxjit/report.hpp"

namespace mxjit::cli {
namespace {

struct ReplayOptions {
  std::string trace, arch;
  std::uint64_t count = 0;  // 0: each problem once
  bool load = false;
};

struct Tally {
  std::uint64_t loaded = 0;  // kernels, ahead of the replay
  std::uint64_t compiled = 0, hits = 0;
  driver::Loads loads;
};

std::uint64_t hits_of(const cache::Counters& counters) {
  return counters.memory_hits + counters.root_hits + counters.layer_hits;
}

template <class Each>
void each_of(const std::vector<problem::Problem>& problems, std::uint64_t count, const Each& each) {
  Progress progress("replaying", count, Progress::Unit::count);
  for (std::uint64_t i = 0; i < count; ++i) {
    each(problems[i % problems.size()]);
    progress.advance(1);
  }
}

Tally replay_on(const Gpu& gpu, const std::vector<problem::Problem>& problems, std::uint64_t count,
                const ReplayOptions& options, const cache::Options& where) {
  Tally tally;
  const std::unique_ptr<Context> context = dispatch::make_context(gpu.index, where);
  auto& state = dispatch::ContextAccess::state(*context);
  state.trace = nullptr;
  if (options.load) tally.loaded = load_kernels(*context, problems);
  const cache::Counters& counters = state.cache->counters();
  const std::uint64_t compiled = counters.compiles, hits = hits_of(counters);
  const driver::Loads before = state.libraries->loads();
  each_of(problems, count, [&](const problem::Problem& problem) { dispatch::replay(*context, problem); });
  const driver::Loads after = state.libraries->loads();
  tally.compiled = counters.compiles - compiled;
  tally.hits = hits_of(counters) - hits;
  tally.loads = {after.libraries - before.libraries, after.functions - before.functions};
  return tally;
}

// Without a GPU: every kernel that a problem is launched with is found.
Tally resolve(const std::vector<problem::Problem>& problems, std::uint64_t count,
              const ReplayOptions& options, const cache::Options& where) {
  const configure::Profile& profile = configure::default_profile(target_or_default(options.arch));
  cache::Cache cache(where);
  each_of(problems, count, [&](const problem::Problem& problem) {
    for (const Kernel& kernel : kernels_of(problem, profile, cache))
      cache.get(kernel.descriptor, problem::print(problem));
  });
  Tally tally;
  tally.compiled = cache.counters().compiles;
  tally.hits = hits_of(cache.counters());
  return tally;
}

int replay(const ReplayOptions& options, const CommonOptions& common) {
  const auto start = std::chrono::steady_clock::now();
  const std::vector<problem::Problem> problems = load_trace(options.trace, "TRACE");
  if (problems.empty())
    throw Error(ErrorCode::invalid_argument,
                fmt::format("TRACE \"{}\": there is no problem in it", options.trace), "TRACE");
  for (const problem::Problem& problem : problems)
    if (!problem::is_concrete(problem))
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("TRACE \"{}\": {}: an extent is a range; a replay needs single numbers",
                              options.trace, title(problem)),
                  "TRACE");
  const std::uint64_t count = options.count == 0 ? problems.size() : options.count;
  const cache::Options where = cache_options(common);
  const std::vector<Gpu> found = gpus();
  if (!found.empty() && !options.arch.empty())
    throw Error(ErrorCode::invalid_argument, "--arch: the GPUs here decide; it is for machines without one",
                "--arch");

  nlohmann::ordered_json devices = nlohmann::ordered_json::array();
  bool clean = true;
  const auto add = [&](const std::string& device, const Tally& tally) {
    const bool loads = tally.loads.libraries + tally.loads.functions > 0;
    clean = clean && tally.compiled == 0 && !(options.load && loads);
    devices.push_back({{"device", device},
                       {"loaded", tally.loaded},
                       {"compiled", tally.compiled},
                       {"hits", tally.hits},
                       {"library_loads", tally.loads.libraries},
                       {"function_loads", tally.loads.functions}});
    if (!common.json)
      print(fmt::format(
          "{}: {} kernels loaded ahead; then {} problems: {} compiled, {} library and {} function loads\n",
          device, tally.loaded, count, tally.compiled, tally.loads.libraries, tally.loads.functions));
  };
  for (const Gpu& gpu : found)
    add(fmt::format("cuda:{}", gpu.index), replay_on(gpu, problems, count, options, where));
  if (found.empty()) {
    note(fmt::format("no GPU here: problems are resolved to their kernels, nothing is loaded or launched\n{}",
                     driver::why_no_gpu()));
    add("none", resolve(problems, count, options, where));
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (common.json)
    print_json({{"problems", problems.size()},
                {"replayed", count},
                {"launched", !found.empty()},
                {"devices", devices},
                {"seconds", seconds}});
  if (!clean) note("error: the replay compiled, or loaded what --load had left out");
  return clean ? exit_done : exit_failed;
}

}  // namespace

void add_replay(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<ReplayOptions>();
  CLI::App* command = add_command(
      app, invocation, "replay", "Launch the problems of a trace, and count compilations and loads",
      "A drill of a deployment: each problem goes through the library on every GPU here, on tensors of its "
      "own\n"
      "placed as the trace says. The status is 1 when anything was compiled or, with --load, loaded while\n"
      "replaying. Without a GPU each problem is only resolved to its kernels, and a note says so.\n\n"
      "A trace holds problems, one JSON object a line; the library writes one where MXJIT_TRACE=FILE is "
      "set.\n\n"
      "Examples:\n"
      "  mxjit replay trace.jsonl --load\n"
      "  MXJIT_COMPILE=forbid MXJIT_BUNDLE_PATH=kernels.bundle mxjit replay trace.jsonl --load --count 1000",
      [options](const CommonOptions& common) { return replay(*options, common); });
  command->add_option("TRACE", options->trace, "Trace (JSON lines)")->required();
  command->add_flag("--load", options->load, "Load every kernel first; the replay must then load nothing");
  command->add_option("--count", options->count, "Problems to replay, in turn (default: each once)")
      ->type_name("N")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 40U));
  add_arch_option(*command, options->arch);
}

}  // namespace mxjit::cli
