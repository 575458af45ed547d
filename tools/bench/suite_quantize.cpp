// Quantizers on the device, beside the copy roof.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "bench/check.hpp"
#include "bench/copy_roof.hpp"
#include "bench/device_source.hpp"
#include "bench/machine.hpp"
#include "bench/progress.hpp"
#include "bench/quantize_case.hpp"
#include "bench/random_data.hpp"
#include "bench/statistics.hpp"
#include "bench/suites.hpp"
#include "dispatch/profile_of_device.hpp"
#include "driver/device_context.hpp"
#include "mxjit/context.hpp"

namespace mxjit::bench {
namespace {

struct Shape {
  std::int64_t m;
  std::int64_t n;
};
constexpr Shape full_shapes[] = {{131072, 5120}, {131072, 2048}, {16384, 5120}, {8192, 5120},
                                 {4096, 5120},   {128, 5120},    {64, 4096},    {1, 7168}};
constexpr Shape quick_shapes[] = {{4096, 5120}, {128, 5120}};

/// All sets of tensors together: many times L2, so that no set is found there on its next turn.
constexpr double rotation_bytes = 420e6;
/// Moved by one replay of a graph: about half a millisecond at the roof.
constexpr double replay_bytes = 2e9;
constexpr int max_launches = 4096;
constexpr std::int64_t large_bytes = std::int64_t{512} << 20;
/// Elements of x compared with the reference, a case.
constexpr std::int64_t check_budget = std::int64_t{8} << 20;
constexpr std::uint8_t poison = 0xA5;

/// What all shapes share.
struct Bench {
  const driver::Api& api;
  std::shared_ptr<const driver::DeviceContext> device;
  Context& context;
  const DeviceProgram& program;
  CopyRoof& roof;
  Clocks& clocks;
  int rounds;
  Result& result;
};

/// One kind of tensor, `sets` times over, each at a 256-byte aligned place.
class Rotation {
 public:
  Rotation(const driver::Api& api, std::int64_t bytes, int sets)
      : stride_((bytes + 255) / 256 * 256), buffer_(api, static_cast<std::size_t>(stride_ * sets)) {}
  std::size_t offset(int set) const {
    return static_cast<std::size_t>(stride_) * static_cast<std::size_t>(set);
  }
  void* at(int set) const { return reinterpret_cast<void*>(buffer_.address() + offset(set)); }
  driver::DeviceBuffer& buffer() { return buffer_; }

 private:
  std::int64_t stride_;
  driver::DeviceBuffer buffer_;
};

/// One timed job: a fused case, or two cases one after the other.
struct Job {
  std::vector<const QuantizeCase*> cases;
  std::vector<QuantizePlan> plans;
  std::size_t number = 0;
};

class ShapeBench {
 public:
  ShapeBench(Bench& bench, const Shape& shape)
      : bench_(bench), shape_(shape), timer_(bench.api), dual_(mx(Axes{true, true}, ScaleLayout::blocked)) {
    const double bytes = moved_bytes(dual_);
    sets_ = std::clamp(static_cast<int>(std::ceil(rotation_bytes / bytes)), 2, max_launches);
    launches_ = std::clamp(static_cast<int>(replay_bytes / bytes), sets_, max_launches);
    x_.emplace(bench.api, shape.m * shape.n * 2, sets_);
    for (const OutputBytes& output : output_bytes(dual_)) {
      outputs_.push_back({output.name, Rotation(bench.api, output.bytes, sets_)});
    }
    for (const QuantizeCase& one : float_cases())
      workspace_bytes_ = std::max(workspace_bytes_, workspace_bytes(one));
    workspace_.emplace(bench.api, workspace_bytes_, sets_);
    fill_normal(bench.api, bench.program, x_->buffer().address(), x_->buffer().bytes() / 2, 7,
                timer_.stream());
  }

  void run() {
    add_cases();
    bench_.roof.add_to(timer_);
    for (const QuantizeCase& one : cases_) {
      const double bytes = std::round(moved_bytes(one));
      if (!copies_.contains(bytes)) copies_[bytes] = bench_.roof.add_same_bytes(timer_, bytes);
    }
    const CUfunction empty = bench_.program.function("empty");
    const std::size_t node =
        timer_.add(1000, [&](int, CUstream stream) { launch_grid(bench_.api, empty, 1, 32, stream, {}); });
    timer_.measure(bench_.rounds, [&] { bench_.clocks.read(); });
    bench_.roof.collect(timer_);
    empty_node_us_ = summarize(timer_.samples(node)).median;
    for (const Job& job : fused_) add_row(job);
  }

 private:
  QuantizeCase mx(Axes axes, ScaleLayout layout, Rounding rounding = Rounding::rceil) const {
    return mx_case({shape_.m, shape_.n}, axes, rounding, layout);
  }

  std::vector<QuantizeCase> float_cases() const {
    const std::vector<std::int64_t> shape = {shape_.m, shape_.n};
    const Block row{.kind = Block::Kind::row, .rows = 1, .cols = 1};
    const Block tensor{.kind = Block::Kind::tensor, .rows = 1, .cols = 1};
    const Block wide{.rows = 1, .cols = 128}, square{.rows = 128, .cols = 128};
    const Axes one{true, false}, both{true, true};
    return {fp32_case(shape, one, row),   fp32_case(shape, both, row),    fp32_case(shape, one, wide),
            fp32_case(shape, both, wide), fp32_case(shape, both, square), fp32_case(shape, one, tensor)};
  }

  /// Plans and captures every case; what is not executable is noted and left out.
  void add_cases() {
    cases_.reserve(16);  // jobs point into them
    pieces_.reserve(16);
    for (const Axes axes : {Axes{true, false}, Axes{true, true}, Axes{false, true}}) {
      for (const ScaleLayout layout : {ScaleLayout::plain, ScaleLayout::blocked})
        cases_.push_back(mx(axes, layout));
    }
    for (const Axes axes : {Axes{true, false}, Axes{true, true}}) {
      cases_.push_back(mx(axes, ScaleLayout::plain, Rounding::floor));
    }
    for (const QuantizeCase& one : float_cases()) cases_.push_back(one);
    for (const QuantizeCase& one : cases_) {
      if (auto job = make_job({&one})) fused_.push_back(std::move(*job));
    }
    for (const QuantizeCase& one : cases_) {
      if (!one.options.axes.row || !one.options.axes.col) continue;
      pieces_.push_back(with_axes(one, {true, false}));
      pieces_.push_back(with_axes(one, {false, true}));
    }
    for (std::size_t i = 0; i < pieces_.size(); i += 2) {
      if (auto job = make_job({&pieces_[i], &pieces_[i + 1]})) unfused_.push_back(std::move(*job));
    }
  }

  std::optional<Job> make_job(std::vector<const QuantizeCase*> cases) {
    Job job{std::move(cases), {}, 0};
    for (const QuantizeCase* one : job.cases) {
      try {
        job.plans.push_back(bench_.context.plan(one->options, arguments(*one, places(0))));
      } catch (const Error& error) {
        if (error.code() != ErrorCode::unsupported) throw;
        note(fmt::format("{}: left out, {}", one->name, error.what()));
        return std::nullopt;
      }
    }
    std::vector<std::vector<QuantizeArgs>> args(job.cases.size());
    for (std::size_t i = 0; i < job.cases.size(); ++i) {
      for (int set = 0; set < sets_; ++set) args[i].push_back(arguments(*job.cases[i], places(set)));
    }
    job.number = timer_.add(launches_, [&](int launch, CUstream stream) {
      for (std::size_t i = 0; i < job.plans.size(); ++i) {
        job.plans[i].launch(args[i][static_cast<std::size_t>(launch % sets_)], stream);
      }
    });
    return job;
  }

  void note(const std::string& text) {
    std::vector<std::string>& notes = bench_.result.notes;
    if (std::find(notes.begin(), notes.end(), text) == notes.end()) notes.push_back(text);
  }

  Places places(int set) const {
    return {x_->at(set),
            outputs_[0].second.at(set),
            outputs_[1].second.at(set),
            outputs_[2].second.at(set),
            outputs_[3].second.at(set),
            workspace_->at(set)};
  }

  void add_row(const Job& job) {
    const QuantizeCase& one = *job.cases.front();
    show_progress(fmt::format("{}x{} {}: comparing with the reference", shape_.m, shape_.n, one.name));
    Row row;
    row.name = one.name;
    row.problem = problem::print({"", one.quantize});
    row.shape = {shape_.m, shape_.n};
    row.samples = timer_.samples(job.number);
    row.bytes = moved_bytes(one);
    row.configuration = configuration_json(one, dispatch::profile_of(bench_.device->facts()));
    row.large = shape_.m * shape_.n * 2 > large_bytes;
    row.difference = difference(job);
    for (const Job& peer : unfused_) {
      const bool same = peer.cases[0]->name == one.name;
      if (!one.options.axes.row || !one.options.axes.col || !same) continue;
      row.peer = Peer{"mxjit row + col, two kernels", summarize(timer_.samples(peer.number)).median};
      if (row.difference.empty()) row.difference = difference(peer);
    }
    row.correct = row.difference.empty();
    row.extra.emplace_back("same_bytes_copy_us",
                           summarize(timer_.samples(copies_.at(std::round(*row.bytes)))).median);
    row.extra.emplace_back("empty_node_us", empty_node_us_);
    bench_.result.rows.push_back(std::move(row));
  }

  /// Poisons the outputs, replays the timed graph and compares the first and the last set with the reference.
  /// Empty, or where the first difference is.
  std::string difference(const Job& job) {
    for (auto& [name, rotation] : outputs_) rotation.buffer().fill(poison, timer_.stream());
    timer_.replay(job.number);
    std::vector<int> sets = {0};
    if (shape_.m * shape_.n * 2 <= large_bytes) sets.push_back(sets_ - 1);
    for (const QuantizeCase* one : job.cases) {
      for (const int set : sets) {
        const std::string found = compare(*one, set);
        if (!found.empty()) return fmt::format("{}, set {}: {}", one->name, set, found);
      }
    }
    return {};
  }

  std::string compare(const QuantizeCase& one, int set) {
    HostOutputs host;
    for (const OutputBytes& output : output_bytes(one)) {
      std::vector<std::uint8_t>& bytes = host[output.name];
      bytes.resize(static_cast<std::size_t>(output.bytes));
      read(find(output.name), set, 0, bytes);
    }
    const auto read_rows = [&](std::int64_t first, std::int64_t count) {
      std::vector<std::uint8_t> rows(static_cast<std::size_t>(count * shape_.n * 2));
      read(*x_, set, first * shape_.n * 2, rows);
      return rows;
    };
    const std::vector<std::int64_t> blocks = spans_all_rows(one.quantize)
                                                 ? std::vector<std::int64_t>{0}
                                                 : blocks_to_check(shape_.m, shape_.n, check_budget);
    return difference_from_reference(one.quantize, host, blocks, read_rows);
  }

  Rotation& find(const std::string& name) {
    return std::find_if(outputs_.begin(), outputs_.end(),
                        [&](const auto& entry) { return entry.first == name; })
        ->second;
  }

  void read(Rotation& from, int set, std::int64_t offset, std::vector<std::uint8_t>& to) {
    const driver::ScopedCurrent current(*bench_.device);  // the check reads from threads of its own
    from.buffer().read(to.data(), to.size(), timer_.stream(),
                       from.offset(set) + static_cast<std::size_t>(offset));
    driver::check(bench_.api, bench_.api.stream_synchronize(timer_.stream()), "cuStreamSynchronize");
  }

  Bench& bench_;
  Shape shape_;
  DeviceTimer timer_;
  QuantizeCase dual_;  // the case with the most and largest outputs
  int sets_ = 0;
  int launches_ = 0;
  std::optional<Rotation> x_;
  std::vector<std::pair<std::string, Rotation>> outputs_;
  std::int64_t workspace_bytes_ = 256;
  std::optional<Rotation> workspace_;
  std::vector<QuantizeCase> cases_;
  std::vector<QuantizeCase> pieces_;
  std::vector<Job> fused_;
  std::vector<Job> unfused_;
  std::map<double, std::size_t> copies_;
  double empty_node_us_ = 0;
};

}  // namespace

Result run_quantize(const BenchOptions& options) {
  const std::string why_not = driver::why_no_gpu();
  if (!why_not.empty()) throw Error(ErrorCode::unavailable, "bench quantize needs a GPU: " + why_not);
  const driver::Api& api = driver::api();
  const auto device = driver::DeviceContext::current(api);
  const driver::ScopedCurrent current(*device);

  Result result;
  result.machine = describe_machine(api, device->device());
  ContextOptions context_options;
  context_options.cache_dir = options.cache_dir;
  Context context(context_options);
  const DeviceProgram program(api, device_source, device->facts().target);
  Clocks clocks(device->device());
  show_progress("copy roof");
  const int rounds = options.quick ? 5 : 21;
  CopyRoof roof(api, program, rounds);
  result.notes = {
      "Times are device times a launch, by CUDA-graph replay between events: every job of a shape in turn, "
      "one "
      "untimed and one timed replay a round; bf16 random normal data, tensors rotated over sets that exceed "
      "L2. "
      "They include the gap between nodes of a graph.",
      "Bytes: x once, every output once. same_bytes_copy_us: our copy kernel moving as many bytes, in the "
      "same rounds. "
      "empty_node_us: a node of a graph of empty kernels.",
      roof.how()};

  Bench bench{api, device, context, program, roof, clocks, rounds, result};
  const auto shapes =
      options.quick ? std::span<const Shape>(quick_shapes) : std::span<const Shape>(full_shapes);
  for (const Shape& shape : shapes) {
    show_progress(fmt::format("{}x{}", shape.m, shape.n));
    ShapeBench(bench, shape).run();
  }
  show_progress("");
  result.roofs = roof.roofs();
  clocks.report(result.machine);
  return result;
}

}  // namespace mxjit::bench
