#include "bench/copy_roof.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "bench/random_data.hpp"
#include "bench/statistics.hpp"

namespace mxjit::bench {
namespace {

constexpr std::uint64_t mib = std::uint64_t{1} << 20;
constexpr std::uint64_t buffer_bytes = 2048 * mib;
constexpr std::uint64_t small_bytes = 64 * mib;
constexpr std::uint64_t vector_bytes = 16;
constexpr unsigned copy_threads = 256;
/// Read plus written by one replay of a graph: long enough for the clock, and many times L2.
constexpr std::uint64_t replay_bytes = 2048 * mib;

constexpr std::uint64_t max_launches = 4096;

struct CopyKernel {
  const char* name;
  int unroll;  // vectors a thread
};
constexpr CopyKernel copy_kernels[] = {
    {"copy_4", 4}, {"copy_8", 8}, {"copy_4_streaming", 4}, {"copy_8_streaming", 8}};

double gbs(std::uint64_t bytes_each_way, double us) {
  return 2.0 * static_cast<double>(bytes_each_way) / us * 1e-3;
}

}  // namespace

CopyRoof::CopyRoof(const driver::Api& api, const DeviceProgram& program, int rounds)
    : api_(api), from_(api, buffer_bytes), to_(api, buffer_bytes) {
  DeviceTimer timer(api);
  fill_normal(api, program, from_.address(), buffer_bytes / 2, 1, timer.stream());
  constexpr std::uint64_t sizes[] = {256 * mib, 512 * mib, 1024 * mib};
  std::vector<std::size_t> jobs;
  for (const CopyKernel& copy : copy_kernels) {
    CUfunction kernel = program.function(copy.name);
    for (const std::uint64_t size : sizes) jobs.push_back(add_copy(timer, kernel, copy.unroll, size));
  }
  timer.measure(rounds, [] {});

  double best = 0;
  const CopyKernel* best_copy = nullptr;
  std::vector<std::string> figures;
  auto job = jobs.begin();
  for (const CopyKernel& copy : copy_kernels) {
    for (const std::uint64_t size : sizes) {
      const double rate = gbs(size, summarize(timer.samples(*job++)).median);
      figures.push_back(fmt::format("{} {} MiB {:.0f}", copy.name, size / mib, rate));
      if (rate <= best) continue;
      best = rate;
      best_copy = &copy;
      bytes_ = size;
    }
  }
  kernel_ = program.function(best_copy->name);
  unroll_ = best_copy->unroll;
  how_ = fmt::format("Copy roof: {} of {} MiB, interleaved with every shape. Candidates, GB/s: {}.",
                     best_copy->name, bytes_ / mib, fmt::join(figures, ", "));
}

std::size_t CopyRoof::add_copy(DeviceTimer& timer, CUfunction kernel, int unroll,
                               std::uint64_t bytes_each_way) const {
  const std::uint64_t places = std::max<std::uint64_t>(1, buffer_bytes / bytes_each_way);
  const std::uint64_t launches =
      std::clamp<std::uint64_t>(replay_bytes / (2 * bytes_each_way), 2, max_launches);
  const std::uint64_t vectors = bytes_each_way / vector_bytes;
  const std::uint64_t vectors_a_block = std::uint64_t{copy_threads} * static_cast<std::uint64_t>(unroll);
  const auto blocks = static_cast<unsigned>((vectors + vectors_a_block - 1) / vectors_a_block);
  return timer.add(static_cast<int>(launches), [&](int i, CUstream stream) {
    const std::uint64_t offset = static_cast<std::uint64_t>(i) % places * bytes_each_way;
    CUdeviceptr from = from_.address() + offset;
    CUdeviceptr to = to_.address() + offset;
    std::uint64_t count = vectors;
    launch_grid(api_, kernel, blocks, copy_threads, stream, {&from, &to, &count});
  });
}

void CopyRoof::add_to(DeviceTimer& timer) {
  roof_job_ = add_copy(timer, kernel_, unroll_, bytes_);
  small_job_ = add_copy(timer, kernel_, unroll_, small_bytes);
}

void CopyRoof::collect(const DeviceTimer& timer) {
  const auto append = [&](std::vector<double>& to, std::size_t job) {
    to.insert(to.end(), timer.samples(job).begin(), timer.samples(job).end());
  };
  append(roof_samples_, roof_job_);
  append(small_samples_, small_job_);
}

std::size_t CopyRoof::add_same_bytes(DeviceTimer& timer, double bytes) const {
  // Whole vectors at 256-byte aligned places, as allocations are.
  const auto each_way = static_cast<std::uint64_t>(bytes / 2) / 256 * 256;
  return add_copy(timer, kernel_, unroll_, std::clamp<std::uint64_t>(each_way, 256, buffer_bytes));
}

Roofs CopyRoof::roofs() const {
  Roofs roofs;
  roofs.copy_gbs = gbs(bytes_, summarize(roof_samples_).median);
  roofs.copy_fixed_us =
      summarize(small_samples_).median - 2.0 * static_cast<double>(small_bytes) / *roofs.copy_gbs * 1e-3;
  return roofs;
}

}  // namespace mxjit::bench
