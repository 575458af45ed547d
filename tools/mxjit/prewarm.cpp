// mxjit prewarm: every kernel that a model or some problems can need, compiled into a cache.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <memory>

#include "cache/cache.hpp"
#include "dispatch/context_state.hpp"
#include "driver/driver.hpp"
#include "mxjit/command.hpp"
#include "mxjit/compile_kernels.hpp"
#include "mxjit/device.hpp"
#include "mxjit/error.hpp"
#include "mxjit/load.hpp"
#include "mxjit/prewarm_plan.hpp"
#include "mxjit/problem_sources.hpp"
#include "mxjit/report.hpp"

namespace mxjit::cli {
namespace {

struct PrewarmOptions {
  ProblemSources sources;
  std::string archs, profiles;
  unsigned threads = 0;  // 0: from cores and memory
  bool dry_run = false, load = false;
};

struct Loaded {
  std::string device;
  std::uint64_t kernels = 0;
  double seconds = 0;
};

// The GPUs that --load is for. Asked before anything is compiled.
std::vector<Gpu> gpus_to_load() {
  std::vector<Gpu> found = gpus();
  if (found.empty())
    throw Error(ErrorCode::unavailable,
                fmt::format("--load: there is no usable GPU: {}", driver::why_no_gpu()), "--load");
  return found;
}

std::vector<Loaded> load_on(const std::vector<Gpu>& gpus, const std::vector<problem::Problem>& problems,
                            const cache::Options& where) {
  std::vector<Loaded> all;
  for (const Gpu& gpu : gpus) {
    const auto start = std::chrono::steady_clock::now();
    const std::unique_ptr<Context> context = dispatch::make_context(gpu.index, where);
    const std::uint64_t kernels = load_kernels(*context, problems);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    all.push_back({fmt::format("cuda:{}", gpu.index), kernels, took.count()});
  }
  return all;
}

nlohmann::ordered_json unsupported_json(const PrewarmPlan& plan) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const UnsupportedProblem& item : plan.unsupported)
    list.push_back({{"problem", item.problem}, {"targets", item.targets}, {"reason", item.reason}});
  return list;
}

nlohmann::ordered_json loaded_json(const std::vector<Loaded>& loaded) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Loaded& item : loaded)
    list.push_back({{"device", item.device}, {"kernels", item.kernels}, {"seconds", item.seconds}});
  return list;
}

void print_unsupported(const PrewarmPlan& plan) {
  if (plan.unsupported.empty()) return;
  print(fmt::format("unsupported by this version: {} problems\n", plan.unsupported.size()));
  for (const UnsupportedProblem& item : plan.unsupported)
    print(fmt::format("  {}  {}: {}\n", fmt::join(item.targets, ","), item.problem, item.reason));
}

// The table: which kernel serves which problems, and whether it is cached.
int dry_run(cache::Cache& cache, const PrewarmPlan& plan, bool json) {
  nlohmann::ordered_json table = nlohmann::ordered_json::array();
  std::size_t cached_count = 0;
  for (const PlannedKernel& planned : plan.kernels) {
    const codegen::KernelDescriptor& descriptor = planned.kernel.descriptor;
    const bool cached = cache.find(descriptor) != nullptr;
    cached_count += cached ? 1 : 0;
    if (json)
      table.push_back({{"key", planned.kernel.key},
                       {"target", descriptor.target},
                       {"kernel", descriptor.configuration.kernel},
                       {"cached", cached},
                       {"problems", planned.problems}});
    else
      print(fmt::format("{}  {}  {:<8}  {:<24}  {}\n", cached ? "cached " : "compile", planned.kernel.key,
                        descriptor.target, descriptor.configuration.kernel,
                        planned.problems.size() == 1 ? planned.problems.front()
                                                     : fmt::format("{} and {} more", planned.problems.front(),
                                                                   planned.problems.size() - 1)));
  }
  if (json) {
    print_json({{"kernels", plan.kernels.size()},
                {"cached", cached_count},
                {"table", table},
                {"unsupported", unsupported_json(plan)}});
    return exit_done;
  }
  print(fmt::format("{} kernels, {} cached, {} to compile\n", plan.kernels.size(), cached_count,
                    plan.kernels.size() - cached_count));
  print_unsupported(plan);
  return exit_done;
}

int prewarm(const PrewarmOptions& options, const CommonOptions& common) {
  const auto start = std::chrono::steady_clock::now();
  const std::vector<problem::Problem> problems = options.sources.gather();
  std::vector<const configure::Profile*> profiles = prewarm_profiles(options.archs, options.profiles);
  const std::vector<Gpu> to_load = options.load ? gpus_to_load() : std::vector<Gpu>();
  for (const Gpu& gpu : to_load)
    if (gpu.profile != nullptr && std::find(profiles.begin(), profiles.end(), gpu.profile) == profiles.end())
      profiles.push_back(gpu.profile);
  const cache::Options where = cache_options(common);
  if (!options.dry_run && !where.root)
    throw Error(
        ErrorCode::invalid_argument,
        "there is no cache root to prewarm: none of --cache, MXJIT_CACHE_DIR, XDG_CACHE_HOME and HOME is set",
        "--cache");
  cache::Cache cache(where);
  const PrewarmPlan plan = plan_prewarm(problems, profiles, *cache.tuning());
  if (options.dry_run) return dry_run(cache, plan, common.json);

  const unsigned threads = options.threads > 0 ? options.threads : default_threads();
  const Tally tally = compile_kernels(cache, plan.kernels, threads);
  std::vector<Loaded> loaded;
  if (tally.failures.empty()) loaded = load_on(to_load, problems, where);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();

  for (const Failure& failure : tally.failures)
    note(fmt::format("error: kernel {} of {}\n{}", failure.key, failure.problem, failure.message));
  if (!tally.spilled.empty()) note(fmt::format("warning: {} kernels spill registers", tally.spilled.size()));
  if (common.json) {
    nlohmann::ordered_json errors = nlohmann::ordered_json::array();
    for (const Failure& failure : tally.failures)
      errors.push_back({{"key", failure.key}, {"problem", failure.problem}, {"message", failure.message}});
    print_json({{"kernels", plan.kernels.size()},
                {"compiled", tally.compiled},
                {"hits", tally.hits},
                {"failed", tally.failures.size()},
                {"unsupported", unsupported_json(plan)},
                {"bytes", tally.bytes},
                {"seconds", seconds},
                {"statistics", to_json(cache.statistics())},
                {"spilled", tally.spilled.size()},
                {"errors", errors},
                {"jobs", threads},
                {"loaded", loaded_json(loaded)}});
  } else {
    print(fmt::format("{} kernels: {} compiled, {} cached already, {} failed; {} in {}\n",
                      plan.kernels.size(), tally.compiled, tally.hits, tally.failures.size(),
                      human_bytes(static_cast<double>(tally.bytes)), human_seconds(seconds)));
    for (const Loaded& device : loaded)
      print(fmt::format("{} kernels loaded on {} in {}\n", device.kernels, device.device,
                        human_seconds(device.seconds)));
    print_unsupported(plan);
  }
  return tally.failures.empty() ? exit_done : exit_failed;
}

}  // namespace

void add_prewarm(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<PrewarmOptions>();
  CLI::App* command = add_command(
      app, invocation, "prewarm", "Compile every kernel that a model, some problems or a trace can need",
      "No GPU is needed. A second run compiles nothing; one that was interrupted goes on where it was.\n"
      "Problems that this version does not execute are listed as unsupported, and are no failure. A kernel\n"
      "that does not compile, or cannot be stored, is (status 1).\n\n"
      "Examples:\n"
      "  mxjit prewarm --model config.json --arch sm_90a --cache /srv/mxjit\n"
      "  mxjit prewarm --model config.json --tp 8 --ep 8 --max-tokens 16384 --arch sm_90a,sm_100a\n"
      "  mxjit prewarm quantize.json gemm.json --dry-run\n"
      "  mxjit prewarm --trace trace.jsonl --load",
      [options](const CommonOptions& common) { return prewarm(*options, common); });
  add_source_options(*command, options->sources, "any extent may be a range");
  command
      ->add_option("--arch", options->archs, "Targets, separated by commas (default: the GPU's, else sm_90a)")
      ->type_name("ARCH[,...]");
  command->add_option("--profile", options->profiles, "Device profiles (default: one for each target)")
      ->type_name("NAME[,...]");
  add_jobs_option(*command, options->threads);
  command->add_flag("--load", options->load,
                    "Then load every kernel on each GPU here, which must be able to hold it");
  command->add_flag("--dry-run", options->dry_run, "Print the table of kernels, compile nothing");
}

}  // namespace mxjit::cli
