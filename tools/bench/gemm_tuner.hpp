// The tiles of a GEMM problem measured against each other.
#pragma once

#include <vector>

#include "bench/device_program.hpp"
#include "bench/device_timer.hpp"
#include "dispatch/placed.hpp"
#include "mxjit/context.hpp"
#include "problem/problem.hpp"

namespace mxjit::bench {

/// Tiles are indices in configure::gemm_tiles; times are medians, microseconds a launch.
struct TileTime {
  int tile = 0;
  double us = 0;
};

struct TileContest {
  std::vector<TileTime> tiles;  // all that took part, in the order given
  TileTime best;                // of the two that were measured once more, the model's choice if it is one
  double model_us = 0;          // in the rounds of `best`
};

/// How much is done for a measurement.
struct TuneEffort {
  double sets_bytes = 420e6;  // all sets of tensors together: many times L2
  double graph_us = 1500;     // a replay of a graph lasts about this long, by a rough estimate
  int first_rounds = 7, last_rounds = 15;
  double first_settling = 1.0, settling = 0.05;  // seconds, before the first contest and in every other
};

class GemmTuner {
 public:
  /// `program` holds the kernels of device_source, to make random operands; without it they are zero.
  GemmTuner(Context& context, const DeviceProgram* program, const TuneEffort& effort = {})
      : context_(context), program_(program), effort_(effort) {}

  /// Measures `tiles` of a concrete problem with every default written out, in turn, by graph replays over
  /// sets of tensors larger than L2, at clocks that have settled; then the fastest and `model`, which is one
  /// of them, once more. Loads, and compiles what the cache lacks. Throws Error(driver) where memory does not
  /// suffice.
  TileContest contest(const problem::Gemm& problem, const std::vector<int>& tiles, int model);

 private:
  std::vector<TileTime> measure(const problem::Gemm& problem, const std::vector<int>& tiles, int rounds,
                                double settle_seconds);

  Context& context_;
  const DeviceProgram* program_;
  TuneEffort effort_;
  std::vector<dispatch::PlacedTensors> sets_;
  bool settled_ = false;
};

}  // namespace mxjit::bench
