// mxjit prewarm: every kernel that a model or some problems can need, compiled into a cache.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>

#include "cache/cache.hpp"
#include "mxjit/command.hpp"
#include "mxjit/error.hpp"
#include "mxjit/files.hpp"
#include "mxjit/prewarm_plan.hpp"
#include "mxjit/progress.hpp"
#include "mxjit/report.hpp"
#include "problem/model.hpp"

namespace mxjit::cli {
namespace {

struct PrewarmOptions {
  std::string model;
  std::vector<std::string> problems;
  std::string archs, profiles;
  unsigned threads = 0;  // 0: from cores and memory
  problem::ModelOptions sizes;
  bool dry_run = false;
};

struct Failure {
  std::string key, problem, message;
};

struct Tally {
  std::uint64_t compiled = 0, hits = 0, spilled = 0, bytes = 0;
  std::vector<Failure> failures;
};

// One a core, and no more than the free memory holds: a compilation peaks at some hundreds of megabytes.
unsigned default_threads() {
  constexpr std::uint64_t bytes_each = 512ULL << 20U;
  const long pages = sysconf(_SC_AVPHYS_PAGES);
  const long page = sysconf(_SC_PAGESIZE);
  const unsigned cores = std::max(1U, std::thread::hardware_concurrency());
  if (pages <= 0 || page <= 0) return cores;
  const std::uint64_t fit = static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page) / bytes_each;
  return static_cast<unsigned>(std::clamp<std::uint64_t>(fit, 1, cores));
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

nlohmann::ordered_json unsupported_json(const PrewarmPlan& plan) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const UnsupportedProblem& item : plan.unsupported)
    list.push_back({{"problem", item.problem}, {"targets", item.targets}, {"reason", item.reason}});
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
  if (options.model.empty() && options.problems.empty())
    throw Error(ErrorCode::invalid_argument, "--model config.json or --problems FILE... is needed",
                "--model");
  const PrewarmPlan plan =
      plan_prewarm(gather_problems(options), prewarm_profiles(options.archs, options.profiles));
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
                {"spilled", tally.spilled},
                {"errors", errors}});
  } else {
    print(fmt::format("{} kernels: {} compiled, {} cached already, {} failed; {} in {}\n",
                      plan.kernels.size(), tally.compiled, tally.hits, tally.failures.size(),
                      human_bytes(static_cast<double>(tally.bytes)), human_seconds(seconds)));
    print_unsupported(plan);
  }
  return tally.failures.empty() ? exit_done : exit_failed;
}

}  // namespace

void add_prewarm(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<PrewarmOptions>();
  CLI::App* command = add_command(
      app, invocation, "prewarm", "Compile every kernel that a model or some problems can need",
      "No GPU is needed. A second run compiles nothing. Problems that this version does not execute are "
      "listed\n"
      "as unsupported, and are no failure. A kernel that does not compile, or cannot be stored, is (status "
      "1).\n\n"
      "Examples:\n"
      "  mxjit prewarm --model config.json --arch sm_90a --cache /srv/mxjit\n"
      "  mxjit prewarm --model config.json --tp 8 --ep 8 --max-tokens 16384 --arch sm_90a,sm_100a\n"
      "  mxjit prewarm --problems quantize.json gemm.json --dry-run",
      [options](const CommonOptions& common) { return prewarm(*options, common); });
  command->add_option("--model", options->model, "A model's Hugging Face config.json")->type_name("FILE");
  command->add_option("--problems", options->problems, "Problem files; an extent may be a range")
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
  command->add_flag("--dry-run", options->dry_run, "Print the table of kernels, compile nothing");
}

}  // namespace mxjit::cli
