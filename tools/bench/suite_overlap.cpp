// A quantization and its GEMM, started in order and early.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "bench/gpu.hpp"
#include "bench/pair_bench.hpp"
#include "bench/progress.hpp"
#include "bench/random_data.hpp"
#include "bench/statistics.hpp"
#include "bench/suites.hpp"

namespace mxjit::bench {
namespace {

std::string title(const Pair& pair) {
  return fmt::format("{} {}", pair.name, pair.gemm.name.substr(pair.gemm.name.find(' ') + 1));
}

std::vector<Pair> chosen(const BenchOptions& options) {
  constexpr std::array<std::array<std::int64_t, 3>, 5> shapes = {
      {{16, 5120, 5120}, {128, 5120, 5120}, {512, 5120, 5120}, {2048, 5120, 5120}, {4096, 4096, 4096}}};
  std::vector<Pair> all;
  for (const auto& [m, n, k] : shapes) {
    if (options.quick && m != 128) continue;
    for (Pair& pair : pairs(m, n, k))
      if (is_chosen(options, title(pair))) all.push_back(std::move(pair));
  }
  if (all.empty()) refuse_choice(options);
  return all;
}

}  // namespace

Result run_overlap(const BenchOptions& options) {
  const std::vector<Pair> all = chosen(options);
  Gpu gpu("overlap");
  Result result;
  result.machine = describe_machine(gpu.api, gpu.device->device());
  ContextOptions context_options;
  context_options.cache_dir = options.cache_dir;
  Context in_order(context_options);
  context_options.early_start = true;
  Context early(context_options);
  result.notes = {
      "Times are device times of a quantization and its GEMM, by CUDA-graph replay between events: every job "
      "in turn, one untimed and one timed replay a round; one set of tensors, which L2 holds, but for two x "
      "and d. The peer is the same pair started in order.",
      "quantize_us, gemm_us: graphs of one of the two. gap_us: the mean way from the end of one kernel to "
      "the start of the next, (us - quantize_us - gemm_us) / 2 + empty_node_us, as is gap_in_order_us of the "
      "peer. empty_node_us: a node of a graph of empty kernels, which is what the way is among themselves.",
      "Correct: in order and early give the same bytes, parts of q_row and s_row are the reference's, 64 x "
      "64 elements of d are near it."};
  std::uint64_t seed = 11;
  for (const Pair& pair : all) {
    show_progress(title(pair));
    PairBench bench(*gpu.device, &gpu.program, {in_order, early}, pair,
                    [&](driver::DeviceBuffer& buffer, CUstream stream) {
                      fill_normal(gpu.api, gpu.program, buffer.address(), buffer.bytes() / 2, seed++, stream);
                      driver::check(gpu.api, gpu.api.stream_synchronize(stream), "cuStreamSynchronize");
                    });
    const double us = moved_bytes(pair.gemm) / 4e6 + 10;
    bench.prepare(std::max(2, static_cast<int>(1500 / us) / 2 * 2));
    CUfunction empty = gpu.program.function("empty");
    const std::size_t node = bench.timer().add(
        1000, [&](int, CUstream stream) { launch_grid(gpu.api, empty, 1, 32, stream, {}); });
    bench.timer().measure(options.quick ? 5 : 21, [&] { gpu.clocks.read(); });
    result.rows.push_back(bench.row(summarize(bench.timer().samples(node)).median));
  }
  show_progress("");
  gpu.clocks.report(result.machine);
  return result;
}

}  // namespace mxjit::bench
