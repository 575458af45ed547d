// mxjit tune: measures the tiles of GEMM problems on a GPU, and keeps what beats the cost model beside the
// cache.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <memory>

#include "bench/device_source.hpp"
#include "bench/gemm_tuner.hpp"
#include "configure/gemm.hpp"
#include "dispatch/context_state.hpp"
#include "mxjit/command.hpp"
#include "mxjit/compile_kernels.hpp"
#include "mxjit/device.hpp"
#include "mxjit/error.hpp"
#include "mxjit/problem_sources.hpp"
#include "mxjit/progress.hpp"
#include "mxjit/report.hpp"
#include "mxjit/tune_plan.hpp"

namespace mxjit::cli {
namespace {

using Json = nlohmann::ordered_json;

struct TuneOptions {
  ProblemSources sources;
  std::vector<std::int64_t> rows;
  unsigned threads = 0;  // 0: from cores and memory
  int gpu = 0;
  double margin = 2;  // percent
  bool dry_run = false;
};

std::string name_of(const TuneJob& job, int tile) {
  return configure::tile_name(configure::gemm_tiles(job.traits)[static_cast<std::size_t>(tile)]);
}

std::string shape_of(const TuneJob& job) { return fmt::format("{}x{}x{}", job.m, job.n, job.k); }

Json skipped_json(const TunePlan& plan) {
  Json list = Json::array();
  for (const UnsupportedProblem& item : plan.skipped)
    list.push_back({{"problem", item.problem}, {"reason", item.reason}});
  return list;
}

void print_skipped(const TunePlan& plan) {
  for (const UnsupportedProblem& item : plan.skipped)
    print(fmt::format("left out  {}: {}\n", item.problem, item.reason));
}

int list_candidates(const TunePlan& plan, const configure::Profile& profile, cache::Cache& cache, bool json) {
  const std::vector<PlannedKernel> kernels = plan.kernels();
  const auto cached = std::count_if(kernels.begin(), kernels.end(), [&](const PlannedKernel& planned) {
    return cache.find(planned.kernel.descriptor) != nullptr;
  });
  Json jobs = Json::array();
  for (const TuneJob& job : plan.jobs) {
    std::vector<std::string> tiles;
    for (const int tile : job.tiles) tiles.push_back(name_of(job, tile));
    if (json)
      jobs.push_back({{"problem", job.title},
                      {"shape", {job.m, job.n, job.k}},
                      {"model", name_of(job, job.model)},
                      {"tiles", tiles}});
    else
      print(fmt::format("{}  {}  {}; the model's: {}\n", shape_of(job), job.title, fmt::join(tiles, ", "),
                        name_of(job, job.model)));
  }
  if (json) {
    print_json({{"profile", profile.name},
                {"problems", plan.jobs.size()},
                {"kernels", kernels.size()},
                {"cached", cached},
                {"jobs", jobs},
                {"skipped", skipped_json(plan)}});
  } else {
    print(fmt::format("{} problems for {}, {} kernels, {} of them to compile\n", plan.jobs.size(),
                      profile.name, kernels.size(), static_cast<std::ptrdiff_t>(kernels.size()) - cached));
    print_skipped(plan);
  }
  return exit_done;
}

/// What became of one job.
struct Outcome {
  const TuneJob* job = nullptr;
  bench::TileContest contest;
  bool kept = false;
  std::string error;  // empty: measured
  double gain() const { return contest.model_us / contest.best.us; }
};

/// Takes the tiles that did not compile, or spill, from the jobs; the model's choice stays, to compare with.
/// Returns one line for each.
std::vector<std::string> reject(TunePlan& plan, const Tally& tally) {
  std::vector<std::string> lines;
  for (TuneJob& job : plan.jobs) {
    for (std::size_t i = job.tiles.size(); i-- > 0;) {
      const std::string& key = job.kernels[i].key;
      const bool failed = std::any_of(tally.failures.begin(), tally.failures.end(),
                                      [&](const Failure& failure) { return failure.key == key; });
      if (!failed && !tally.spilled.contains(key)) continue;
      const std::string why = failed ? "does not compile" : "spills registers";
      lines.push_back(fmt::format("{} {}: {} {}", shape_of(job), job.title, name_of(job, job.tiles[i]), why));
      if (job.tiles[i] == job.model && !failed) continue;
      job.tiles.erase(job.tiles.begin() + static_cast<std::ptrdiff_t>(i));
      job.kernels.erase(job.kernels.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  std::erase_if(plan.jobs, [](const TuneJob& job) {
    return std::find(job.tiles.begin(), job.tiles.end(), job.model) == job.tiles.end();
  });
  return lines;
}

/// Keeps the winner where it is faster than the model's choice by the margin, else forgets an earlier one.
void keep(cache::Cache& cache, const configure::DeviceKind& kind, const std::string& gpu, double margin,
          Outcome& outcome) {
  const TuneJob& job = *outcome.job;
  outcome.kept = outcome.contest.best.tile != job.model && outcome.gain() >= 1 + margin / 100;
  cache.change_tuning([&](configure::TuningTable& table) {
    const configure::GemmClass of = configure::TuningTable::class_of(job.problem);
    configure::DeviceTuning& device = table.devices[kind];
    device.gpu = gpu;
    device.gemm.erase(of);
    if (outcome.kept)
      device.gemm[of] = {.problem = job.problem,
                         .tile = outcome.contest.best.tile,
                         .us = outcome.contest.best.us,
                         .model_us = outcome.contest.model_us};
    if (device.gemm.empty()) table.devices.erase(kind);
  });
}

Json outcome_json(const Outcome& outcome) {
  const TuneJob& job = *outcome.job;
  Json json = {{"problem", job.title}, {"shape", {job.m, job.n, job.k}}};
  if (!outcome.error.empty()) {
    json["error"] = outcome.error;
    return json;
  }
  Json tiles = Json::array();
  for (const bench::TileTime& time : outcome.contest.tiles)
    tiles.push_back({{"tile", name_of(job, time.tile)}, {"us", time.us}});
  json["model"] = {{"tile", name_of(job, job.model)}, {"us", outcome.contest.model_us}};
  json["best"] = {{"tile", name_of(job, outcome.contest.best.tile)}, {"us", outcome.contest.best.us}};
  json["gain"] = outcome.gain();
  json["kept"] = outcome.kept;
  json["tiles"] = std::move(tiles);
  return json;
}

void print_outcome(const Outcome& outcome) {
  const TuneJob& job = *outcome.job;
  if (!outcome.error.empty()) {
    print(fmt::format("failed  {}  {}: {}\n", shape_of(job), job.title, outcome.error));
    return;
  }
  print(fmt::format("{}  {}  {}: model {} {:.3f} us, best {} {:.3f} us, {:.3f} times\n",
                    outcome.kept ? "kept  " : "model ", shape_of(job), job.title, name_of(job, job.model),
                    outcome.contest.model_us, name_of(job, outcome.contest.best.tile),
                    outcome.contest.best.us, outcome.gain()));
}

std::vector<Outcome> measure(Context& context, const TunePlan& plan, double margin) {
  const auto& state = dispatch::ContextAccess::state(context);
  const driver::DeviceFacts& facts = state.device->facts();
  const driver::ScopedCurrent current(*state.device);
  const bench::DeviceProgram program(state.device->api(), bench::device_source, facts.target);
  bench::GemmTuner tuner(context, &program);
  Progress progress("tuning", plan.jobs.size(), Progress::Unit::count);
  std::vector<Outcome> outcomes;
  for (const TuneJob& job : plan.jobs) {
    Outcome& outcome = outcomes.emplace_back();
    outcome.job = &job;
    try {
      outcome.contest = tuner.contest(job.problem, job.tiles, job.model);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::driver) throw;  // no memory for this one, say
      outcome.error = error.what();
    }
    if (outcome.error.empty())
      keep(*state.cache, {std::string(state.profile.name), facts.sm_count}, facts.name, margin, outcome);
    progress.advance(1);
  }
  return outcomes;
}

int tune(const TuneOptions& options, const CommonOptions& common) {
  const auto start = std::chrono::steady_clock::now();
  const std::vector<problem::Problem> problems = options.sources.gather();
  const cache::Options where = cache_options(common);
  const std::string why_not = driver::why_no_gpu();
  if (options.dry_run) {
    const std::vector<Gpu> here = gpus();
    const auto at = static_cast<std::size_t>(options.gpu);
    const configure::Profile& profile = at < here.size() && here[at].profile != nullptr
                                            ? *here[at].profile
                                            : configure::default_profile(target_or_default(""));
    cache::Cache cache(where);
    return list_candidates(plan_tuning(problems, profile, options.rows), profile, cache, common.json);
  }
  if (!why_not.empty())
    throw Error(ErrorCode::unavailable,
                "tune measures on a GPU, and there is none; --dry-run lists what it would: " + why_not);
  if (!where.root)
    throw Error(ErrorCode::invalid_argument,
                "there is no cache root to keep winners beside: none of --cache, MXJIT_CACHE_DIR, "
                "XDG_CACHE_HOME and HOME is set",
                "--cache");
  const std::unique_ptr<Context> context = dispatch::make_context(options.gpu, where);
  const auto& state = dispatch::ContextAccess::state(*context);
  TunePlan plan = plan_tuning(problems, state.profile, options.rows);
  const Tally tally = compile_kernels(*state.cache, plan.kernels(),
                                      options.threads > 0 ? options.threads : default_threads());
  const std::size_t planned = plan.jobs.size();
  const std::vector<std::string> rejected = reject(plan, tally);
  for (const std::string& line : rejected) note("rejected: " + line);
  const std::vector<Outcome> outcomes = measure(*context, plan, options.margin);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();

  const auto count = [&](auto&& is) { return std::count_if(outcomes.begin(), outcomes.end(), is); };
  const auto kept = count([](const Outcome& outcome) { return outcome.kept; });
  const auto failed = count([](const Outcome& outcome) { return !outcome.error.empty(); }) +
                      static_cast<std::ptrdiff_t>(planned - plan.jobs.size());
  if (common.json) {
    Json results = Json::array();
    for (const Outcome& outcome : outcomes) results.push_back(outcome_json(outcome));
    print_json({{"gpu", state.device->facts().name},
                {"profile", state.profile.name},
                {"problems", planned},
                {"kept", kept},
                {"failed", failed},
                {"compiled", tally.compiled},
                {"hits", tally.hits},
                {"rejected", rejected},
                {"skipped", skipped_json(plan)},
                {"table", where.root->string() + "/tuning.json"},
                {"seconds", seconds},
                {"results", results}});
  } else {
    for (const Outcome& outcome : outcomes) print_outcome(outcome);
    print(fmt::format("{} problems on {}: {} winners kept, {} left to the model, {} failed, in {}\n", planned,
                      state.device->facts().name, kept,
                      static_cast<std::ptrdiff_t>(outcomes.size()) - kept -
                          count([](const Outcome& outcome) { return !outcome.error.empty(); }),
                      failed, human_seconds(seconds)));
    print_skipped(plan);
  }
  return failed == 0 ? exit_done : exit_failed;
}

}  // namespace

void add_tune(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<TuneOptions>();
  CLI::App* command = add_command(
      app, invocation, "tune", "Measure the tiles of GEMM problems, and keep what beats the cost model",
      "Compiles the tiles that a problem can get, measures them on the GPU, and keeps the fastest where it\n"
      "is faster than the cost model's choice by the margin, in tuning.json beside the cache's entries. A\n"
      "winner serves its N, K and types, and as many rows of tiles (M by 64, up to 64 by 16). Calls of that\n"
      "kind of GPU get it from then on, and so do prewarm, explain, emit and bundles. A problem measured\n"
      "again gets a new winner or none. Other work on the GPU spoils the measurement.\n\n"
      "Examples:\n"
      "  mxjit tune gemm.json\n"
      "  mxjit tune --model config.json --tp 8 --rows 16,64,4096 --cache /srv/mxjit\n"
      "  mxjit tune --trace trace.jsonl --dry-run",
      [options](const CommonOptions& common) { return tune(*options, common); });
  add_source_options(*command, options->sources, "M and the batch may be a range");
  command
      ->add_option("--rows", options->rows,
                   "M to measure of problems with a range of it (default: powers of two and its largest)")
      ->type_name("M[,...]")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 31));
  command->add_option("--margin", options->margin, "Percent by which a winner must be faster")
      ->type_name("P")
      ->check(CLI::Range(0.0, 100.0))
      ->capture_default_str();
  command->add_option("--gpu", options->gpu, "Which GPU, counted from 0")
      ->type_name("N")
      ->check(CLI::Range(0, 1023))
      ->capture_default_str();
  add_jobs_option(*command, options->threads);
  command->add_flag("--dry-run", options->dry_run, "List the problems and their tiles; needs no GPU");
}

}  // namespace mxjit::cli
