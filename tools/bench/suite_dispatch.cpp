// Host cost of a call over the bare driver launch: with a launch entry that does nothing, and real.
#include <fmt/format.h>

#include <bit>
#include <optional>
#include <random>
#include <span>

#include "bench/check.hpp"
#include "bench/host_timer.hpp"
#include "bench/machine.hpp"
#include "bench/op_case.hpp"
#include "bench/progress.hpp"
#include "bench/statistics.hpp"
#include "bench/suites.hpp"
#include "bench/temporary_folder.hpp"
#include "cache/cache.hpp"
#include "dispatch/context_state.hpp"
#include "driver/device_buffer.hpp"
#include "driver/stub.hpp"
#include "mxjit/context.hpp"

namespace mxjit::bench {
namespace {

constexpr std::int64_t rows = 128;
constexpr std::int64_t columns = 5120;
/// Argument sets that calls take in turn, so that no call repeats the addresses of the one before.
constexpr int sets = 4;
constexpr double one_call_target_us = 1.0;
constexpr double held_plan_target_us = 0.3;

// The launch entries that are put into the driver's table. They have no state but this.
int launches_counted = 0;
decltype(driver::Api::launch_kernel_ex) bare_launch = nullptr;
int bare_calls = 0;
double bare_seconds = 0;

CUresult launch_nothing(const CUlaunchConfig*, CUfunction, void**, void**) { return CUDA_SUCCESS; }

CUresult launch_counted(const CUlaunchConfig*, CUfunction, void**, void**) {
  ++launches_counted;
  return CUDA_SUCCESS;
}

/// Stands where the library launches, and makes the same launch again and again: same function, same
/// parameters.
CUresult launch_timed(const CUlaunchConfig* config, CUfunction function, void** params, void** extra) {
  CUresult result = CUDA_SUCCESS;
  bare_seconds = seconds([&] {
    for (int i = 0; i < bare_calls && result == CUDA_SUCCESS; ++i)
      result = bare_launch(config, function, params, extra);
  });
  return result;
}

/// The driver, the real one or the one without a device, with a launch entry that can be exchanged.
class Bench {
 public:
  Bench(const driver::Api& api, const cache::Options& options)
      : table_(api), real_launch_(api.launch_kernel_ex) {
    device_ = driver::DeviceContext::current(table_);
    context_ = dispatch::ContextAccess::make(device_, std::make_shared<driver::Libraries>(),
                                             std::make_shared<cache::Cache>(options));
    stream_ = driver::make_stream(table_);
  }

  /// Adds the three rows of a case. `real`: launches run on the device.
  void run(const OpCase& one, bool real, int rounds, int calls, Result& result) {
    Tensors tensors(*this, one);
    const QuantizePlan plan = context_->plan(tensors.options, tensors.args[0]);
    const std::string difference = check(one, tensors, plan, real);

    const auto target = real ? real_launch_ : launch_nothing;
    table_.launch_kernel_ex = target;
    HostTimer timer;
    const std::size_t bare = timer.add([&](int count) {
      bare_launch = target;
      bare_calls = count;
      table_.launch_kernel_ex = launch_timed;
      plan.launch(tensors.args[0], stream_.get());
      table_.launch_kernel_ex = target;
      synchronize();
      return bare_seconds;
    });
    const std::size_t one_call = timer.add([&](int count) {
      const double time = seconds([&] {
        for (int i = 0; i < count; ++i)
          context_->quantize(tensors.options, tensors.args[i % sets], stream_.get());
      });
      synchronize();
      return time;
    });
    const std::size_t held = timer.add([&](int count) {
      const double time = seconds([&] {
        for (int i = 0; i < count; ++i) plan.launch(tensors.args[i % sets], stream_.get());
      });
      synchronize();
      return time;
    });
    timer.measure(rounds, calls);

    const auto add = [&](const char* what, std::size_t job, std::optional<double> target_us) {
      Row row;
      row.name = fmt::format("{} {} {}", one.name, what, real ? "real" : "stub");
      row.problem = problem::print(one.problem);
      row.shape = {rows, columns};
      row.samples = timer.samples(job);
      row.configuration = configuration_json(one, dispatch::ContextAccess::state(*context_).profile);
      row.correct = difference.empty();
      row.difference = difference;
      if (target_us) {
        const auto over = differences(timer.samples(job), timer.samples(bare));
        row.extra.emplace_back("over_bare_us", summarize(over).median);
        row.extra.emplace_back("target_us", *target_us);
      }
      result.rows.push_back(std::move(row));
    };
    add("bare launch", bare, std::nullopt);
    add("one-call", one_call, one_call_target_us);
    add("held plan", held, held_plan_target_us);
  }

  CUdevice device() const { return device_->device(); }

 private:
  /// The tensors of every argument set, x holding the same random values in each.
  struct Tensors {
    Tensors(Bench& bench, const OpCase& one) {
      std::mt19937 random(11);
      std::normal_distribution<float> normal;
      x.resize(static_cast<std::size_t>(rows * columns * 2));
      for (std::size_t i = 0; i < x.size(); i += 2) {
        const auto bits = std::bit_cast<std::uint32_t>(normal(random)) >> 16;
        x[i] = static_cast<std::uint8_t>(bits);
        x[i + 1] = static_cast<std::uint8_t>(bits >> 8);
      }
      for (int set = 0; set < sets; ++set) {
        const auto tensors = device_tensors(one, [&](const problem::TensorDecl& decl) {
          buffers.emplace_back(decl.name,
                               driver::DeviceBuffer(bench.table_, static_cast<std::size_t>(bytes_of(decl))));
          driver::DeviceBuffer& buffer = buffers.back().second;
          if (!decl.output) buffer.write(x.data(), x.size(), bench.stream_.get());
          return buffer.data();
        });
        const dispatch::QuantizeCall call = dispatch::quantize_call(quantize_of(one), tensors);
        options = call.options;
        args.push_back(call.args);
      }
      bench.synchronize();
    }
    std::vector<std::uint8_t> x;
    std::vector<std::pair<std::string, driver::DeviceBuffer>> buffers;  // set after set
    QuantizeOptions options;
    std::vector<QuantizeArgs> args;
  };

  /// Both entries make one launch each; where they are real, the outputs are the reference's.
  std::string check(const OpCase& one, Tensors& tensors, const QuantizePlan& plan, bool real) {
    launches_counted = 0;
    table_.launch_kernel_ex = launch_counted;
    context_->quantize(tensors.options, tensors.args[0], stream_.get());
    plan.launch(tensors.args[1], stream_.get());
    if (launches_counted != 2) return fmt::format("{} launches for two calls", launches_counted);
    if (!real) return {};

    table_.launch_kernel_ex = real_launch_;
    for (auto& [name, buffer] : tensors.buffers) {
      if (name != "x") buffer.fill(0xA5, stream_.get());
    }
    context_->quantize(tensors.options, tensors.args[0], stream_.get());
    plan.launch(tensors.args[1], stream_.get());
    const std::size_t in_set = tensors.buffers.size() / sets;
    for (std::size_t set = 0; set < 2; ++set) {
      std::map<std::string, std::vector<std::uint8_t>> bytes;
      for (std::size_t i = set * in_set; i < (set + 1) * in_set; ++i) {
        const auto& [name, buffer] = tensors.buffers[i];
        bytes[name].resize(buffer.bytes());
        buffer.read(bytes[name].data(), buffer.bytes(), stream_.get());
      }
      synchronize();
      std::string difference = difference_from_reference(
          one, rows * columns,
          [&](const std::string& tensor, const Region& region) { return packed(bytes.at(tensor), region); });
      if (!difference.empty()) return difference;
    }
    return {};
  }

  void synchronize() {
    driver::check(table_, table_.stream_synchronize(stream_.get()), "cuStreamSynchronize");
  }

  driver::Api table_;
  decltype(driver::Api::launch_kernel_ex) real_launch_;
  std::shared_ptr<const driver::DeviceContext> device_;
  std::unique_ptr<Context> context_;
  driver::OwnedStream stream_;
};

}  // namespace

Result run_dispatch(const BenchOptions& options) {
  const std::string why_not = driver::why_no_gpu();
  const bool gpu = why_not.empty();
  const TemporaryFolder folder;
  cache::Options cache_options;
  cache_options.root = folder.path();

  Bench bench(gpu ? driver::api() : driver::stub_api(), cache_options);
  Result result;
  if (gpu) result.machine = describe_machine(driver::api(), bench.device());
  result.machine.nvrtc = nvrtc_version();
  result.notes = {
      "Host time a call: batches of calls, the bare launch, the one-call entry and the held plan in turn; "
      "over_bare_us "
      "is the median of the differences within a round. Everything is warm. The bare launch repeats the "
      "launch that "
      "the held plan makes: same function, configuration and parameters. Calls take four sets of addresses "
      "in turn.",
      gpu ? "stub: the driver's launch entry is replaced by one that does nothing, every other call is the "
            "driver's; "
            "real: launches run on the device."
          : fmt::format(
                "stub: the whole driver is replaced by one that does nothing, because there is no GPU: {}.",
                first_clause(why_not))};

  const int stub_rounds = options.quick ? 11 : 101;
  const int stub_calls = options.quick ? 1000 : 10000;
  const int real_rounds = options.quick ? 11 : 201;
  constexpr int real_calls = 100;  // fewer than the driver queues before it waits
  for (const Axes axes : {Axes{true, false}, Axes{true, true}}) {
    const OpCase one = mx_case({rows, columns}, axes, Rounding::rceil, ScaleLayout::plain);
    show_progress(one.name);
    bench.run(one, false, stub_rounds, stub_calls, result);
    if (gpu) bench.run(one, true, real_rounds, real_calls, result);
  }
  show_progress("");
  if (!options.quick) {
    result.notes.push_back(fmt::format("Stub rows: {} calls each; real rows: {} calls each.",
                                       stub_rounds * stub_calls, gpu ? real_rounds * real_calls : 0));
  }
  return result;
}

}  // namespace mxjit::bench
