// mxjit prewarm: every kernel that a model or some problems can need, compiled into a cache.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>

#include "base/resources.hpp"
#include "cache/cache.hpp"
#include "dispatch/context_state.hpp"
#include "driver/driver.hpp"
#include "mxjit/command.hpp"
#include "mxjit/device.hpp"
#include "mxjit/error.hpp"
#include "mxjit/files.hpp"
#include "mxjit/load.hpp"
#include "mxjit/prewarm_plan.hpp"
#include "mxjit/progress.hpp"
#include "mxjit/report.hpp"
#include "problem/model.hpp"

namespace mxjit::cli {
namespace {

struct PrewarmOptions {
  std::string model;
  std::vector<std::string> problems, traces;
  std::string archs, profiles;
  unsigned threads = 0;  // 0: from cores and memory
  problem::ModelOptions sizes;
  bool dry_run = false, load = false;
};

struct Failure {
  std::string key, problem, message;
};

struct Tally {
  std::uint64_t compiled = 0, hits = 0, spilled = 0, bytes = 0;
  std::vector<Failure> failures;
};

// One a core, and no more than the free memory holds: tools/mxjit/README.md has what compilations peak at.
unsigned default_threads() {
  constexpr std::uint64_t bytes_each = 256ULL << 20U;
  const Resources here = available_resources();
  if (here.memory_bytes == 0) return here.cores;
  return static_cast<unsigned>(std::clamp<std::uint64_t>(here.memory_bytes / bytes_each, 1, here.cores));
}

std::vector<problem::Problem> gather_problems(const PrewarmOptions& options) {
  std::vector<problem::Problem> problems;
  if (!options.model.empty()) {
    const std::string text = read_text(options.model, "--model");
    try {
      for (problem::ModelProblem& found : problem::model_problems(text, options.sizes).problems)
        problems.push_back(std::move(found.problem));
    } catch (const Error& error) {
      const bool of_file = error.argument().empty() || error.argument().starts_with('/');
      throw Error(error.code(), fmt::format("\"{}\": {}", options.model, error.what()),
                  of_file ? error.argument() : "--" + error.argument());
    }
  }
  for (const std::string& path : options.problems) problems.push_back(load_problem(path, "--problems"));
  for (const std::string& path : options.traces)
    for (problem::Problem& problem : load_trace(path, "--trace")) problems.push_back(std::move(problem));
  return problems;
}

Tally compile_all(cache::Cache& cache, const std::vector<PlannedKernel>& kernels, unsigned threads) {
  Progress progress("compiling", kernels.size(), Progress::Unit::count);
  std::mutex mutex;  // guards tally and stop
  Tally tally;
  std::exception_ptr stop;  // nothing that follows could succeed: no NVRTC, no room
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < kernels.size(); i = next++) {
      const PlannedKernel& planned = kernels[i];
      try {
        const bool compiled = cache.prewarm(planned.kernel.descriptor, planned.problem_json);
        const auto entry = cache.find(planned.kernel.descriptor);
        std::scoped_lock lock(mutex);
        ++(compiled ? tally.compiled : tally.hits);
        if (entry) {
          tally.bytes += entry->cubin.size();
          if (entry->resources.spill_bytes > 0) ++tally.spilled;
        }
      } catch (const Error& error) {
        std::scoped_lock lock(mutex);
        if (error.code() == ErrorCode::compile_failed)
          tally.failures.push_back({planned.kernel.key, planned.problems.front(), error.what()});
        else if (!stop)
          stop = std::current_exception();
        if (stop) next = kernels.size();
      }
      progress.advance(1);
    }
  };
  std::vector<std::jthread> workers;
  for (std::size_t i = 1; i < std::min<std::size_t>(threads, kernels.size()); ++i) workers.emplace_back(work);
  work();
  workers.clear();
  if (stop) std::rethrow_exception(stop);
  return tally;
}

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
  if (options.model.empty() && options.problems.empty() && options.traces.empty())
    throw Error(ErrorCode::invalid_argument,
                "--model config.json, --problems FILE... or --trace FILE is needed", "--model");
  const std::vector<problem::Problem> problems = gather_problems(options);
  std::vector<const configure::Profile*> profiles = prewarm_profiles(options.archs, options.profiles);
  const std::vector<Gpu> to_load = options.load ? gpus_to_load() : std::vector<Gpu>();
  for (const Gpu& gpu : to_load)
    if (gpu.profile != nullptr && std::find(profiles.begin(), profiles.end(), gpu.profile) == profiles.end())
      profiles.push_back(gpu.profile);
  const PrewarmPlan plan = plan_prewarm(problems, profiles);
  const cache::Options where = cache_options(common);
  if (!options.dry_run && !where.root)
    throw Error(
        ErrorCode::invalid_argument,
        "there is no cache root to prewarm: none of --cache, MXJIT_CACHE_DIR, XDG_CACHE_HOME and HOME is set",
        "--cache");
  cache::Cache cache(where);
  if (options.dry_run) return dry_run(cache, plan, common.json);

  const unsigned threads = options.threads > 0 ? options.threads : default_threads();
  const Tally tally = compile_all(cache, plan.kernels, threads);
  std::vector<Loaded> loaded;
  if (tally.failures.empty()) loaded = load_on(to_load, problems, where);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();

  for (const Failure& failure : tally.failures)
    note(fmt::format("error: kernel {} of {}\n{}", failure.key, failure.problem, failure.message));
  if (tally.spilled > 0) note(fmt::format("warning: {} kernels spill registers", tally.spilled));
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
                {"spilled", tally.spilled},
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
      "No GPU is needed. A second run compiles nothing; one that was interrupted goes on where it was. "
      "Problems that this version does not execute are "
      "listed\n"
      "as unsupported, and are no failure. A kernel that does not compile, or cannot be stored, is (status "
      "1).\n\n"
      "Examples:\n"
      "  mxjit prewarm --model config.json --arch sm_90a --cache /srv/mxjit\n"
      "  mxjit prewarm --model config.json --tp 8 --ep 8 --max-tokens 16384 --arch sm_90a,sm_100a\n"
      "  mxjit prewarm --problems quantize.json gemm.json --dry-run\n"
      "  mxjit prewarm --trace trace.jsonl --load",
      [options](const CommonOptions& common) { return prewarm(*options, common); });
  command->add_option("--model", options->model, "A model's Hugging Face config.json")->type_name("FILE");
  command->add_option("--problems", options->problems, "Problem files; an extent may be a range")
      ->type_name("FILE...");
  command
      ->add_option("--trace", options->traces,
                   "Traces: problems that a process asked for, one JSON object a line (MXJIT_TRACE=FILE)")
      ->type_name("FILE...");
  command
      ->add_option("--arch", options->archs, "Targets, separated by commas (default: the GPU's, else sm_90a)")
      ->type_name("ARCH[,...]");
  command->add_option("--profile", options->profiles, "Device profiles (default: one for each target)")
      ->type_name("NAME[,...]");
  command
      ->add_option("-j,--jobs", options->threads, "Compilations at a time (default: from cores and memory)")
      ->type_name("N")
      ->check(CLI::Range(1U, 1024U));
  command->add_option("--max-tokens", options->sizes.max_tokens, "Most tokens in a step")
      ->type_name("M")
      ->capture_default_str();
  command->add_option("--tp", options->sizes.tp, "Tensor parallel size")
      ->type_name("N")
      ->capture_default_str();
  command->add_option("--ep", options->sizes.ep, "Expert parallel size")
      ->type_name("N")
      ->capture_default_str();
  command->add_flag("--load", options->load,
                    "Then load every kernel on each GPU here, which must be able to hold it");
  command->add_flag("--dry-run", options->dry_run, "Print the table of kernels, compile nothing");
}

}  // namespace mxjit::cli
