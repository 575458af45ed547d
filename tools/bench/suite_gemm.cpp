// FP8 GEMM on the device, beside cuBLASLt.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <random>

#include "bench/copy_roof.hpp"
#include "bench/cublaslt.hpp"
#include "bench/gemm_case.hpp"
#include "bench/gpu.hpp"
#include "bench/progress.hpp"
#include "bench/random_data.hpp"
#include "bench/statistics.hpp"
#include "bench/suites.hpp"
#include "dispatch/profile_of_device.hpp"
#include "dispatch/run.hpp"
#include "driver/device_context.hpp"
#include "mxjit/context.hpp"

namespace mxjit::bench {
namespace {

struct Shape {
  std::int64_t m, n, k;
};

std::vector<Shape> all_shapes(bool quick) {
  if (quick) return {{512, 7168, 5120}, {4096, 4096, 4096}};
  std::vector<Shape> shapes;
  constexpr std::array<std::array<std::int64_t, 2>, 5> weights = {
      {{7168, 5120}, {5120, 5120}, {4096, 7168}, {7168, 2048}, {24576, 1536}}};
  for (const std::int64_t m : {16, 64, 128, 512, 2048, 4096, 8192})
    for (const auto& [n, k] : weights) shapes.push_back({m, n, k});
  shapes.push_back({4096, 4096, 4096});
  shapes.push_back({8192, 8192, 8192});
  return shapes;
}

/// All sets of tensors together: many times L2.
constexpr double rotation_bytes = 420e6;
/// A replay of a graph lasts about this long, by a rough estimate.
constexpr double replay_us = 1500;
constexpr std::uint8_t poison = 0xA5;

/// What all shapes share.
struct Bench {
  Gpu& gpu;
  Context& context;
  CublasLt* peer;
  CopyRoof& roof;
  int rounds;
  Result& result;
};

/// cuBLASLt under one scaling and accumulation.
struct PeerJob {
  PeerScaling scaling;
  bool fast;
  std::unique_ptr<CublasLt::Matmul> matmul;
  std::size_t number = 0;
};

class ShapeBench {
 public:
  ShapeBench(Bench& bench, const Shape& shape, std::vector<GemmCase> cases)
      : bench_(bench), shape_(shape), timer_(bench.gpu.api), cases_(std::move(cases)) {
    const double bytes = moved_bytes(cases_.front());
    const double us = std::max(2.0 * static_cast<double>(shape.m * shape.n * shape.k) / 1.3e9, bytes / 4e6);
    sets_ = std::clamp(static_cast<int>(std::ceil(rotation_bytes / bytes)), 2, 64);
    launches_ = std::max(sets_, static_cast<int>(replay_us / us));
    for (int set = 0; set < sets_; ++set) {
      const std::uint64_t seed = 2 * static_cast<std::uint64_t>(set) + 1;
      a_.push_back(random_operand(shape.m, seed));
      b_.push_back(random_operand(shape.n, seed + 1));
      d_.emplace_back(bench.gpu.api, static_cast<std::size_t>(shape.m * shape.n * 2));
    }
    // As many factors as the longest layout has, each operand's own, whatever reads them.
    a_scale_ = random_factors((shape.m + 4) * (shape.k / 128 + 4), 5);
    b_scale_ = random_factors((shape.n + 4) * (shape.k / 128 + 4), 6);
  }

  void run() {
    std::vector<std::size_t> numbers;
    for (const GemmCase& one : cases_) numbers.push_back(add_case(one));
    add_peers();
    bench_.roof.add_to(timer_);
    timer_.measure(bench_.rounds, [&] { bench_.gpu.clocks.read(); });
    bench_.roof.collect(timer_);
    for (std::size_t i = 0; i < cases_.size(); ++i) add_row(cases_[i], numbers[i]);
  }

 private:
  /// e4m3 (rows, K): normal values, quantized by this library.
  driver::DeviceBuffer random_operand(std::int64_t rows, std::uint64_t seed) {
    driver::DeviceBuffer q(bench_.gpu.api, static_cast<std::size_t>(rows * shape_.k));
    fill_normal_codes(bench_.context, bench_.gpu.program, q.data(), rows * shape_.k, DType::e4m3, seed,
                      timer_.stream());
    return q;
  }

  driver::DeviceBuffer random_factors(std::int64_t count, unsigned seed) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> draw(0.5F, 1.5F);
    std::vector<float> values(static_cast<std::size_t>(count));
    for (float& value : values) value = draw(random);
    driver::DeviceBuffer buffer(bench_.gpu.api, values.size() * sizeof(float));
    buffer.write(values.data(), buffer.bytes(), timer_.stream());
    driver::check(bench_.gpu.api, bench_.gpu.api.stream_synchronize(timer_.stream()), "cuStreamSynchronize");
    return buffer;
  }

  void* place(const std::string& name, int set) const {
    const auto at = static_cast<std::size_t>(set);
    if (name == "a") return a_[at].data();
    if (name == "b") return b_[at].data();
    if (name == "d") return d_[at].data();
    return name == "a_scale" ? a_scale_.data() : b_scale_.data();
  }

  dispatch::GemmCall call(const GemmCase& one, int set) const {
    dispatch::DeviceTensors tensors;
    for (const problem::TensorDecl& decl : problem::tensors({"", one.gemm})) {
      Tensor& tensor = tensors[decl.name];
      tensor = {
          .data = place(decl.name, set), .dtype = decl.dtype, .rank = static_cast<int>(decl.shape.size())};
      std::ranges::copy(decl.shape, tensor.shape.begin());
    }
    return dispatch::gemm_call(one.gemm, tensors);
  }

  std::size_t add_case(const GemmCase& one) {
    std::vector<dispatch::GemmCall> calls;
    calls.reserve(static_cast<std::size_t>(sets_));
    for (int set = 0; set < sets_; ++set) calls.push_back(call(one, set));
    const GemmPlan plan = bench_.context.plan(calls[0].options, calls[0].args);
    return timer_.add(launches_, [&](int launch, CUstream stream) {
      plan.launch(calls[static_cast<std::size_t>(launch % sets_)].args, stream);
    });
  }

  PeerTensors peer_tensors(int set) const { return {place("a", set), place("b", set), place("d", set)}; }

  void add_peers() {
    if (bench_.peer == nullptr) return;
    for (const PeerScaling scaling : {PeerScaling::tensor, PeerScaling::row, PeerScaling::block})
      for (const bool fast : {true, false}) {
        if (fast && scaling == PeerScaling::block) continue;
        const PeerProblem problem{shape_.m, shape_.n,        shape_.k,       scaling,
                                  fast,     a_scale_.data(), b_scale_.data()};
        auto matmul = bench_.peer->prepare(problem, peer_tensors(0), timer_.stream());
        if (matmul == nullptr) continue;
        PeerJob job{scaling, fast, std::move(matmul), 0};
        job.number = timer_.add(launches_, [&](int launch, CUstream stream) {
          job.matmul->launch(peer_tensors(launch % sets_), stream);
        });
        peers_.push_back(std::move(job));
      }
  }

  /// cuBLASLt of the same accumulation: the best of tensor- and row-wise, or its block scaling.
  std::optional<Peer> peer_of(const GemmCase& one) const {
    const bool block = one.scaling == PeerScaling::block, fast = one.gemm.accumulation == Accumulation::fast;
    std::optional<Peer> best;
    for (const PeerJob& job : peers_) {
      if ((job.scaling == PeerScaling::block) != block || job.fast != fast) continue;
      const double us = summarize(timer_.samples(job.number)).median;
      if (best && best->us <= us) continue;
      const char* scaling = block ? "block" : job.scaling == PeerScaling::row ? "row" : "tensor";
      best = Peer{fmt::format("cuBLASLt {}{}", scaling, fast ? " fast" : ""), us};
    }
    return best;
  }

  void add_row(const GemmCase& one, std::size_t number) {
    show_progress(one.name + ": comparing with the reference");
    Row row;
    row.name = one.name;
    row.problem = problem::print({"", one.gemm});
    row.shape = {shape_.m, shape_.n, shape_.k};
    row.samples = timer_.samples(number);
    row.bytes = moved_bytes(one);
    row.flop =
        2.0 * static_cast<double>(shape_.m) * static_cast<double>(shape_.n) * static_cast<double>(shape_.k);
    row.configuration =
        configuration_json(one, std::string(dispatch::profile_of(bench_.gpu.device->facts()).name));
    row.peer = peer_of(one);
    for (driver::DeviceBuffer& d : d_) d.fill(poison, timer_.stream());
    timer_.replay(number);
    for (const int set : {0, sets_ - 1}) {
      row.difference = difference_from_reference(
          one, [&](const std::string& tensor, std::int64_t offset, std::int64_t bytes) {
            return read(tensor, set, offset, bytes);
          });
      if (!row.difference.empty()) break;
    }
    row.correct = row.difference.empty();
    note_rate(one, *row.flop);
    bench_.result.rows.push_back(std::move(row));
  }

  /// The arithmetic roofs are the best that cuBLASLt reaches in the run.
  void note_rate(const GemmCase& one, double flop) {
    const auto peer = peer_of(one);
    if (!peer || one.scaling == PeerScaling::block) return;
    Roofs& roofs = bench_.result.roofs;
    std::optional<double>& best =
        one.gemm.accumulation == Accumulation::fast ? roofs.fp8_tflops : roofs.fp8_promote_tflops;
    best = std::max(best.value_or(0.0), flop / peer->us * 1e-6);
  }

  std::vector<std::uint8_t> read(const std::string& name, int set, std::int64_t offset, std::int64_t bytes) {
    const auto at = static_cast<std::size_t>(set);
    const driver::DeviceBuffer& buffer = name == "a"         ? a_[at]
                                         : name == "b"       ? b_[at]
                                         : name == "d"       ? d_[at]
                                         : name == "a_scale" ? a_scale_
                                                             : b_scale_;
    std::vector<std::uint8_t> to(static_cast<std::size_t>(bytes));
    buffer.read(to.data(), to.size(), timer_.stream(), static_cast<std::size_t>(offset));
    driver::check(bench_.gpu.api, bench_.gpu.api.stream_synchronize(timer_.stream()), "cuStreamSynchronize");
    return to;
  }

  Bench& bench_;
  Shape shape_;
  DeviceTimer timer_;
  std::vector<GemmCase> cases_;
  int sets_ = 0;
  int launches_ = 0;
  std::vector<driver::DeviceBuffer> a_, b_, d_;
  driver::DeviceBuffer a_scale_, b_scale_;
  std::vector<PeerJob> peers_;
};

}  // namespace

Result run_gemm(const BenchOptions& options) {
  std::vector<std::pair<Shape, std::vector<GemmCase>>> chosen;
  for (const Shape& shape : all_shapes(options.quick)) {
    std::vector<GemmCase> cases = gemm_cases(shape.m, shape.n, shape.k);
    std::erase_if(cases, [&](const GemmCase& one) { return !is_chosen(options, one.name); });
    if (!cases.empty()) chosen.emplace_back(shape, std::move(cases));
  }
  if (chosen.empty()) refuse_choice(options);
  Gpu gpu("gemm");
  Result result;
  result.machine = describe_machine(gpu.api, gpu.device->device());
  ContextOptions context_options;
  context_options.cache_dir = options.cache_dir;
  Context context(context_options);
  show_progress("copy roof");
  const int rounds = options.quick ? 5 : 11;
  CopyRoof roof(gpu.api, gpu.program, rounds);
  std::string why;
  const std::unique_ptr<CublasLt> peer = CublasLt::open(why);
  result.notes = {
      "Times are device times a launch, by CUDA-graph replay between events: every job of a shape in turn, "
      "one "
      "untimed and one timed replay a round; e4m3 of random normal data, tensors rotated over sets that "
      "exceed L2.",
      peer != nullptr
          ? fmt::format("Peer: cuBLASLt {}, of its first eight suggestions the fastest; it reads the same "
                        "operands and as many factors. fp8_tflops and fp8_promote_tflops are its best "
                        "rates in this run, with and without fast accumulation.",
                        peer->version())
          : "No peer: " + why,
      "Correct: 64 x 64 elements spread over d, of the first and the last set, against the fp64 reference.",
      roof.how()};

  Bench bench{gpu, context, peer.get(), roof, rounds, result};
  for (auto& [shape, cases] : chosen) {
    show_progress(fmt::format("{}x{}x{}", shape.m, shape.n, shape.k));
    ShapeBench(bench, shape, std::move(cases)).run();
  }
  show_progress("");
  const Roofs copy = roof.roofs();
  result.roofs.copy_gbs = copy.copy_gbs;
  result.roofs.copy_fixed_us = copy.copy_fixed_us;
  gpu.clocks.report(result.machine);
  return result;
}

}  // namespace mxjit::bench
