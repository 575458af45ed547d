#include "bench/gemm_tuner.hpp"

#include <algorithm>
#include <cmath>

#include "bench/random_data.hpp"
#include "bench/statistics.hpp"
#include "dispatch/context_state.hpp"
#include "dispatch/gemm_check.hpp"
#include "problem/layout.hpp"

namespace mxjit::bench {
namespace {

double bytes_of(const dispatch::PlacedTensors& placed) {
  double bytes = 0;
  for (const auto& [name, buffer] : placed.buffers) bytes += static_cast<double>(buffer.bytes());
  return bytes;
}

double estimated_us(const problem::Gemm& problem, double bytes) {
  const problem::GemmExtents extents = problem::gemm_extents(problem);
  const double flop = 2.0 * static_cast<double>(extents.m.max) * static_cast<double>(extents.n.max) *
                      static_cast<double>(extents.k.max);
  constexpr double least = 2;
  return least + std::max(flop / 1.3e9, bytes / 4e6);
}

}  // namespace

TileContest GemmTuner::contest(const problem::Gemm& problem, const std::vector<int>& tiles, int model) {
  const driver::DeviceContext& device = *dispatch::ContextAccess::state(context_).device;
  const driver::ScopedCurrent current(device);
  const driver::OwnedStream stream = driver::make_stream(device.api());
  sets_.clear();
  std::uint64_t seed = 1;
  for (std::size_t wanted = 2; sets_.size() < wanted;) {
    dispatch::PlacedTensors& set =
        sets_.emplace_back(dispatch::place(device.api(), {"", problem}, stream.get()));
    wanted = static_cast<std::size_t>(std::clamp(std::ceil(effort_.sets_bytes / bytes_of(set)), 2.0, 64.0));
    for (auto& [name, buffer] : set.buffers) {
      const DType format = set.tensors.at(name).dtype;
      if (name.ends_with("_scale")) buffer.fill(0x3F, stream.get());  // 0.747
      if ((name == "a" || name == "b") && program_ != nullptr)
        fill_normal_codes(context_, *program_, buffer.data(), static_cast<std::int64_t>(buffer.bytes()),
                          format, seed++, stream.get());
    }
  }
  driver::check(device.api(), device.api().stream_synchronize(stream.get()), "cuStreamSynchronize");

  TileContest made;
  made.tiles =
      measure(problem, tiles, effort_.first_rounds, settled_ ? effort_.settling : effort_.first_settling);
  settled_ = true;
  const auto faster = [](const TileTime& a, const TileTime& b) { return a.us < b.us; };
  const int best = std::min_element(made.tiles.begin(), made.tiles.end(), faster)->tile;
  if (best == model) {
    made.best = *std::min_element(made.tiles.begin(), made.tiles.end(), faster);
    made.model_us = made.best.us;
  } else {
    const std::vector<TileTime> last = measure(problem, {model, best}, effort_.last_rounds, effort_.settling);
    made.model_us = last[0].us;
    made.best = last[1].us < last[0].us ? last[1] : last[0];
  }
  sets_.clear();
  return made;
}

std::vector<TileTime> GemmTuner::measure(const problem::Gemm& problem, const std::vector<int>& tiles,
                                         int rounds, double settle_seconds) {
  auto& state = dispatch::ContextAccess::state(context_);
  DeviceTimer timer(state.device->api());
  std::vector<dispatch::GemmCall> calls;
  for (const dispatch::PlacedTensors& set : sets_) calls.push_back(dispatch::gemm_call(problem, set.tensors));
  const dispatch::GemmSizes sizes = dispatch::check_gemm(calls[0].options, calls[0].args);
  dispatch::GemmKey key{.traits = dispatch::gemm_traits(calls[0].options, calls[0].args)};
  const int launches =
      std::max(static_cast<int>(sets_.size()),
               static_cast<int>(effort_.graph_us / estimated_us(problem, bytes_of(sets_.front()))));
  for (const int tile : tiles) {
    key.tile = static_cast<std::uint8_t>(tile);
    const auto plan = state.make_gemm_plan(calls[0].options, calls[0].args, key);
    timer.add(launches, [&](int launch, CUstream stream) {
      plan->launch(calls[static_cast<std::size_t>(launch) % calls.size()].args, sizes, stream);
    });
  }
  timer.settle(settle_seconds);
  timer.measure(rounds, [] {});
  std::vector<TileTime> times;
  for (std::size_t i = 0; i < tiles.size(); ++i)
    times.push_back({tiles[i], summarize(timer.samples(i)).median});
  return times;
}

}  // namespace mxjit::bench
