// Quantizers and what belongs to them on the device, beside the copy roof.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <optional>
#include <thread>

#include "bench/check.hpp"
#include "bench/copy_roof.hpp"
#include "bench/gpu.hpp"
#include "bench/op_table.hpp"
#include "bench/progress.hpp"
#include "bench/random_data.hpp"
#include "bench/statistics.hpp"
#include "bench/suites.hpp"
#include "bench/tensor_pool.hpp"
#include "codegen/descriptor.hpp"
#include "configure/configure.hpp"
#include "dispatch/context_state.hpp"
#include "mxjit/error.hpp"

namespace mxjit::bench {
namespace {

/// All sets of tensors together: many times L2, so that no set is found there on its next turn.
constexpr double rotation_bytes = 420e6;
/// Moved by one replay of a graph: about half a millisecond at the roof.
constexpr double replay_bytes = 2e9;
constexpr int max_launches = 4096;
constexpr std::int64_t large_bytes = std::int64_t{512} << 20;
/// Elements compared with the reference, a case and set.
constexpr std::int64_t check_budget = std::int64_t{4} << 20;
constexpr std::uint8_t poison = 0xA5;

/// What all shapes share.
struct Bench {
  Gpu& gpu;
  Context& context;
  CopyRoof& roof;
  int rounds;
  Result& result;

  void note(const std::string& text) const {
    std::vector<std::string>& notes = result.notes;
    if (std::find(notes.begin(), notes.end(), text) == notes.end()) notes.push_back(text);
  }
};

std::string title(const OpCase& one) { return fmt::format("{} {}", one.name, fmt::join(one.shape, "x")); }

/// A contest as jobs of the timer.
struct Entry {
  const Contest* contest;
  std::size_t fused = 0;
  std::optional<std::size_t> peer;
};

class FamilyBench {
 public:
  FamilyBench(Bench& bench, const Family& family)
      : bench_(bench),
        family_(family),
        timer_(bench.gpu.api),
        pool_(*bench.gpu.device, &bench.gpu.program, timer_.stream()) {
    for (const Contest& contest : family.contests) {
      pool_.add(contest.one, sets_of(contest));
      for (const OpCase& piece : contest.peer) pool_.add(piece, sets_of(contest));
    }
    std::uint64_t seed = 7;
    pool_.make([&](driver::DeviceBuffer& buffer) {
      fill_normal(bench.gpu.api, bench.gpu.program, buffer.address(), buffer.bytes() / 2, seed++,
                  timer_.stream());
    });
  }

  void run() {
    for (const Contest& contest : family_.contests) {
      const int sets = sets_of(contest);
      const auto fused = add_job({&contest.one}, sets);
      if (!fused) continue;
      std::vector<const OpCase*> pieces;
      for (const OpCase& piece : contest.peer) pieces.push_back(&piece);
      entries_.push_back({&contest, *fused, pieces.empty() ? std::nullopt : add_job(pieces, sets)});
    }
    bench_.roof.add_to(timer_);
    for (const Entry& entry : entries_) {
      const double bytes = std::round(moved_bytes(entry.contest->one));
      if (!copies_.contains(bytes)) copies_[bytes] = bench_.roof.add_same_bytes(timer_, bytes);
    }
    CUfunction empty = bench_.gpu.program.function("empty");
    const std::size_t node = timer_.add(
        1000, [&](int, CUstream stream) { launch_grid(bench_.gpu.api, empty, 1, 32, stream, {}); });
    timer_.measure(bench_.rounds, [&] { bench_.gpu.clocks.read(); });
    bench_.roof.collect(timer_);
    empty_node_us_ = summarize(timer_.samples(node)).median;
    for (const Entry& entry : entries_) add_row(entry);
  }

 private:
  static int sets_of(const Contest& contest) {
    const double sets = std::ceil(rotation_bytes / std::max(1.0, moved_bytes(contest.one)));
    return static_cast<int>(std::clamp(sets, 2.0, static_cast<double>(max_launches)));
  }

  /// Loads and captures cases, one after the other in every launch; what is not executable is noted.
  std::optional<std::size_t> add_job(const std::vector<const OpCase*>& cases, int sets) {
    double bytes = 1;
    std::vector<std::vector<std::function<void(Stream)>>> calls;  // of each case, a set each
    for (const OpCase* one : cases) {
      bytes += moved_bytes(*one);
      std::vector<std::function<void(Stream)>>& of_case = calls.emplace_back();
      try {
        configure::configure(one->problem, dispatch::ContextAccess::state(bench_.context).profile);
        for (int set = 0; set < sets; ++set)
          of_case.push_back(prepare(bench_.context, *one, pool_.tensors(*one, set)));
        of_case.front()(timer_.stream());
      } catch (const Error& error) {
        if (error.code() != ErrorCode::unsupported) throw;
        bench_.note(fmt::format("{}: left out, {}", one->name, error.what()));
        return std::nullopt;
      }
    }
    const int launches =
        static_cast<int>(std::clamp<double>(replay_bytes / bytes, sets, std::max(sets, max_launches)));
    return timer_.add(launches, [&](int launch, CUstream stream) {
      for (const auto& of_case : calls) of_case[static_cast<std::size_t>(launch % sets)](stream);
    });
  }

  void add_row(const Entry& entry) {
    const OpCase& one = entry.contest->one;
    show_progress(title(one) + ": comparing with the reference");
    Row row;
    row.name = one.name;
    row.problem = problem::print(one.problem);
    row.shape = one.shape;
    row.samples = timer_.samples(entry.fused);
    row.bytes = moved_bytes(one);
    row.configuration = configuration_json(one, dispatch::ContextAccess::state(bench_.context).profile);
    std::int64_t read = 0;
    for (const problem::TensorDecl& decl : tensors_of(one)) read += decl.output ? 0 : bytes_of(decl);
    row.large = read > large_bytes;
    row.difference = difference(*entry.contest, entry.fused);
    if (entry.peer) {
      row.peer = Peer{entry.contest->peer_name, summarize(timer_.samples(*entry.peer)).median};
      if (row.difference.empty()) {
        row.difference = difference(*entry.contest, *entry.peer);
        if (!row.difference.empty()) row.difference = row.peer->name + ": " + row.difference;
      }
    }
    row.correct = row.difference.empty();
    row.extra.emplace_back("same_bytes_copy_us",
                           summarize(timer_.samples(copies_.at(std::round(*row.bytes)))).median);
    row.extra.emplace_back("empty_node_us", empty_node_us_);
    bench_.result.rows.push_back(std::move(row));
  }

  /// Poisons what is written, replays the timed graph and compares the first and the last set, or of large
  /// tensors the first, with the reference. Empty, or where the first difference is.
  std::string difference(const Contest& contest, std::size_t job) {
    const OpCase& one = contest.one;
    pool_.poison(poison);
    timer_.replay(job);
    std::vector<int> sets = {0};
    if (moved_bytes(one) <= static_cast<double>(large_bytes)) sets.push_back(sets_of(contest) - 1);
    for (const int set : sets) {
      const std::string found = difference_from_reference(one, check_budget, pool_.reader(one, set));
      if (!found.empty()) return fmt::format("set {}: {}", set, found);
    }
    return {};
  }

  Bench& bench_;
  const Family& family_;
  DeviceTimer timer_;
  TensorPool pool_;
  std::vector<Entry> entries_;
  std::map<double, std::size_t> copies_;
  double empty_node_us_ = 0;
};

/// Compiles what the suite needs, on every core. What fails is reported where it is used.
void compile_all(Context& context, const std::vector<Family>& families) {
  auto& state = dispatch::ContextAccess::state(context);
  std::map<codegen::KernelDescriptor, std::string> kernels;
  const auto add = [&](const OpCase& one) {
    try {
      for (const configure::Configuration& configuration : configure::configure(one.problem, state.profile))
        kernels.try_emplace({configuration, std::string(state.profile.target)}, problem::print(one.problem));
    } catch (const Error&) {
      return;
    }
  };
  for (const Family& family : families) {
    for (const Contest& contest : family.contests) {
      add(contest.one);
      for (const OpCase& piece : contest.peer) add(piece);
    }
  }
  const std::vector<std::pair<codegen::KernelDescriptor, std::string>> list(kernels.begin(), kernels.end());
  std::atomic<std::size_t> next{0};
  std::vector<std::jthread> threads;
  for (unsigned i = 0; i < std::max(1U, std::thread::hardware_concurrency()); ++i)
    threads.emplace_back([&] {
      for (std::size_t at = next++; at < list.size(); at = next++) {
        try {
          state.cache->prewarm(list[at].first, list[at].second);
        } catch (const Error&) {
        }
      }
    });
}

/// The table, or what of it `only` finds in "name shape".
std::vector<Family> chosen(const BenchOptions& options) {
  std::vector<Family> families = op_table(options.quick);
  for (Family& family : families)
    std::erase_if(family.contests,
                  [&](const Contest& contest) { return !is_chosen(options, title(contest.one)); });
  std::erase_if(families, [](const Family& family) { return family.contests.empty(); });
  if (families.empty()) refuse_choice(options);
  return families;
}

}  // namespace

Result run_quantize(const BenchOptions& options) {
  const std::vector<Family> families = chosen(options);
  Gpu gpu("quantize");
  Result result;
  result.machine = describe_machine(gpu.api, gpu.device->device());
  ContextOptions context_options;
  context_options.cache_dir = options.cache_dir;
  Context context(context_options);
  show_progress("compiling");
  compile_all(context, families);
  show_progress("copy roof");
  const int rounds = options.quick ? 5 : 21;
  CopyRoof roof(gpu.api, gpu.program, rounds);
  result.notes = {
      "Times are device times a launch, by CUDA-graph replay between events: every job of a shape in turn, "
      "one untimed and one timed replay a round; bf16 random normal data, tensors rotated over sets that "
      "exceed L2. They include the gap between nodes of a graph.",
      "Bytes: every input once, every output once. same_bytes_copy_us: our copy kernel moving as many bytes, "
      "in the same rounds. empty_node_us: a node of a graph of empty kernels.",
      roof.how()};

  Bench bench{gpu, context, roof, rounds, result};
  for (const Family& family : families) {
    show_progress(fmt::format("{}", fmt::join(family.shape, "x")));
    FamilyBench(bench, family).run();
  }
  show_progress("");
  result.roofs = roof.roofs();
  gpu.clocks.report(result.machine);
  return result;
}

}  // namespace mxjit::bench
