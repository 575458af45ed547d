#include "mxjit/compile_kernels.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>

#include "base/resources.hpp"
#include "mxjit/error.hpp"
#include "mxjit/progress.hpp"

namespace mxjit::cli {

// tools/mxjit/README.md has what compilations peak at.
unsigned default_threads() {
  constexpr std::uint64_t bytes_each = 256ULL << 20U;
  const Resources here = available_resources();
  if (here.memory_bytes == 0) return here.cores;
  return static_cast<unsigned>(std::clamp<std::uint64_t>(here.memory_bytes / bytes_each, 1, here.cores));
}

void add_jobs_option(CLI::App& command, unsigned& threads) {
  command.add_option("-j,--jobs", threads, "Compilations at a time (default: from cores and memory)")
      ->type_name("N")
      ->check(CLI::Range(1U, 1024U));
}

Tally compile_kernels(cache::Cache& cache, const std::vector<PlannedKernel>& kernels, unsigned threads) {
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
          if (entry->resources.spill_bytes > 0) tally.spilled.insert(planned.kernel.key);
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

}  // namespace mxjit::cli
