// What a kernel costs before its first launch: cold, through the compiler; warm, from the disk.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <iterator>
#include <set>
#include <utility>

#include "bench/host_timer.hpp"
#include "bench/machine.hpp"
#include "bench/op_case.hpp"
#include "bench/progress.hpp"
#include "bench/statistics.hpp"
#include "bench/suites.hpp"
#include "bench/temporary_folder.hpp"
#include "cache/cache.hpp"
#include "codegen/descriptor.hpp"
#include "compile/nvrtc.hpp"
#include "configure/configure.hpp"
#include "dispatch/context_state.hpp"
#include "dispatch/profile_of_device.hpp"
#include "driver/device_buffer.hpp"
#include "driver/stub.hpp"
#include "mxjit/context.hpp"

namespace mxjit::bench {
namespace {

constexpr double compile_target_us = 300e3;
constexpr double load_target_us = 1e3;

/// A kernel and a case that needs it.
struct Kernel {
  OpCase used_by;
  codegen::KernelDescriptor descriptor;
};

/// What Llama-3-8B and Llama-4 Scout quantize: hidden and intermediate sizes of activations and weights,
/// experts as one tensor; for inference (row) and training (dual).
std::vector<Kernel> representative_kernels(const configure::Profile& profile) {
  const std::vector<std::vector<std::int64_t>> shapes = {{128, 4096}, {128, 14336},    {128, 5120},
                                                         {128, 8192}, {16, 128, 5120}, {16, 128, 8192}};
  std::vector<Kernel> kernels;
  std::set<codegen::KernelDescriptor> seen;
  for (const Rounding rounding : {Rounding::rceil, Rounding::floor}) {
    for (const ScaleLayout layout : {ScaleLayout::plain, ScaleLayout::blocked}) {
      for (const Axes axes : {Axes{true, false}, Axes{true, true}}) {
        for (const auto& shape : shapes) {
          const OpCase one = mx_case(shape, axes, rounding, layout);
          for (const auto& configuration : configure::configure(one.problem, profile)) {
            codegen::KernelDescriptor descriptor{configuration, std::string(profile.target)};
            if (seen.insert(descriptor).second) kernels.push_back({one, std::move(descriptor)});
          }
        }
      }
    }
  }
  return kernels;
}

/// Processor time of this process: what the work costs when other programs run too.
double processor_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

Row make_row(const Kernel& kernel, const char* what, std::vector<double> samples, double target_us) {
  Row row;
  row.name = fmt::format("{} {}", kernel.used_by.name, what);
  row.problem = problem::print(kernel.used_by.problem);
  for (const problem::Extent& extent : quantize_of(kernel.used_by).input.shape)
    row.shape.push_back(extent.min);
  row.samples = std::move(samples);
  row.configuration = codegen::print(kernel.descriptor);
  row.extra.emplace_back("target_us", target_us);
  return row;
}

/// One row that stands for all kernels: its samples are their medians.
Row over_all(const std::vector<Row>& rows, const char* what, double target_us) {
  Row row;
  row.name = fmt::format("all kernels, {}", what);
  row.correct = true;
  for (const Row& one : rows) {
    row.samples.push_back(summarize(one.samples).median);
    row.correct = row.correct && one.correct;
  }
  row.shape = {static_cast<std::int64_t>(rows.size()), 1};
  row.extra.emplace_back("target_us", target_us);
  return row;
}

/// Source to cubin, in a process that has compiled before. Correct: no spills.
std::vector<Row> measure_compiles(const std::vector<Kernel>& kernels, compile::Nvrtc& nvrtc, int rounds) {
  std::vector<std::vector<double>> samples(kernels.size());
  std::vector<std::vector<double>> processor(kernels.size());
  std::vector<bool> clean(kernels.size(), true);
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < kernels.size(); ++i) {
      show_progress(fmt::format("compiling, round {} of {}, kernel {} of {}", round + 1, rounds, i + 1,
                                kernels.size()));
      compile::Compiled compiled;
      const double before = processor_seconds();
      samples[i].push_back(1e6 * seconds([&] { compiled = nvrtc.compile(kernels[i].descriptor); }));
      processor[i].push_back(1e6 * (processor_seconds() - before));
      clean[i] = clean[i] && !compiled.cubin.empty() && compiled.resources.spill_bytes == 0;
    }
  }
  std::vector<Row> rows;
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    rows.push_back(make_row(kernels[i], "compile", std::move(samples[i]), compile_target_us));
    rows.back().extra.emplace_back("processor_us", summarize(processor[i]).median);
    rows.back().correct = clean[i];
    if (!clean[i]) rows.back().difference = "the kernel spills";
  }
  return rows;
}

/// A kernel on the disk to a plan that can launch: a cache and a context that have never seen it. Correct: no
/// call of the compiler.
class DiskHits {
 public:
  DiskHits(const driver::Api& api, cache::Options options)
      : api_(api), options_(std::move(options)), device_(driver::DeviceContext::current(api)) {}

  std::vector<Row> measure(const std::vector<Kernel>& kernels, int rounds) {
    std::vector<Row> rows;
    for (const Kernel& kernel : kernels) {
      show_progress(fmt::format("loading {}", kernel.used_by.name));
      std::vector<double> samples;
      std::uint64_t compiles = 0;
      const driver::DeviceBuffer memory(api_, static_cast<std::size_t>(moved_bytes(kernel.used_by)) + 2048);
      const dispatch::QuantizeCall call = call_in(memory, kernel.used_by);
      for (int round = 0; round <= rounds; ++round) {
        const auto cache = std::make_shared<cache::Cache>(options_);
        const auto context =
            dispatch::ContextAccess::make(device_, std::make_shared<driver::Libraries>(), cache);
        const double time = seconds([&] { context->plan(call.options, call.args); });
        if (round > 0) samples.push_back(1e6 * time);  // the first warms the file system and the driver
        compiles += cache->counters().compiles;
      }
      rows.push_back(make_row(kernel, "disk hit", std::move(samples), load_target_us));
      rows.back().correct = compiles == 0;
      if (compiles != 0) rows.back().difference = "the compiler was called";
      rows.back().extra.emplace_back("compiles", static_cast<double>(compiles));
    }
    return rows;
  }

  CUdevice device() const { return device_->device(); }

 private:
  /// Tensors of the case's sizes, one after the other in one allocation: a plan asks the driver about them.
  static dispatch::QuantizeCall call_in(const driver::DeviceBuffer& memory, const OpCase& one) {
    auto at = reinterpret_cast<std::uintptr_t>(memory.data());
    const auto tensors = device_tensors(one, [&](const problem::TensorDecl& decl) {
      void* const place = reinterpret_cast<void*>(at);
      at += static_cast<std::uintptr_t>((bytes_of(decl) + 255) / 256 * 256);
      return place;
    });
    return dispatch::quantize_call(quantize_of(one), tensors);
  }

  const driver::Api& api_;
  cache::Options options_;
  std::shared_ptr<const driver::DeviceContext> device_;
};

}  // namespace

Result run_compile(const BenchOptions& options) {
  // NVRTC keeps a cache of its own between processes; the library passes --no-cache, and this covers any that
  // does not know the option.
  setenv("CUDA_CACHE_DISABLE", "1", 1);
  const std::string why_not = driver::why_no_gpu();
  const bool gpu = why_not.empty();
  const driver::Api& api = gpu ? driver::api() : driver::stub_api();
  const TemporaryFolder folder;
  cache::Options cache_options;
  cache_options.root = folder.path();
  DiskHits hits(api, cache_options);
  const configure::Profile& profile = dispatch::profile_of(driver::device_facts(api, hits.device()));
  const std::vector<Kernel> kernels = representative_kernels(profile);

  Result result;
  std::shared_ptr<compile::Nvrtc> nvrtc;
  const double open_us = 1e6 * seconds([&] { nvrtc = compile::Nvrtc::open(); });
  const double first_us = 1e6 * seconds([&] { nvrtc->compile(kernels.front().descriptor); });
  std::vector<Row> compiles = measure_compiles(kernels, *nvrtc, options.quick ? 1 : 3);
  {
    cache::Cache filled(cache_options);
    for (const Kernel& kernel : kernels) filled.prewarm(kernel.descriptor);
  }
  std::vector<Row> loads = hits.measure(kernels, options.quick ? 5 : 25);
  show_progress("");

  result.rows = {over_all(compiles, "compile", compile_target_us),
                 over_all(loads, "disk hit", load_target_us)};
  std::move(compiles.begin(), compiles.end(), std::back_inserter(result.rows));
  std::move(loads.begin(), loads.end(), std::back_inserter(result.rows));
  if (gpu) result.machine = describe_machine(driver::api(), hits.device());
  result.machine.nvrtc = nvrtc->build();
  result.notes = {
      fmt::format(
          "compile: descriptor to cubin for {} in a process that has compiled before, NVRTC's own cache off; "
          "correct means that nothing spills. Opening NVRTC took {:.1f} ms, the first compilation of the "
          "process {:.1f} ms.",
          profile.target, open_us * 1e-3, first_us * 1e-3),
      fmt::format(
          "disk hit: problem to a plan that can launch, with a cache object and a context that have never "
          "seen "
          "the kernel: key, read, verification, {}; correct means that the compiler was never called.",
          gpu ? "load on the device"
              : fmt::format("no load, because there is no GPU: {}", first_clause(why_not))),
      "The rows \"all kernels\" have the median of each kernel as their samples and the number of kernels as "
      "their "
      "first extent."};
  return result;
}

}  // namespace mxjit::bench
