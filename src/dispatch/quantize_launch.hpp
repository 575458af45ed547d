// From a loaded quantize kernel and checked tensors to a launch.
#pragma once

#include "configure/configuration.hpp"
#include "driver/driver.hpp"
#include "mxjit/quantize.hpp"

namespace mxjit::dispatch {

/// What a launch needs to know of a configuration, found out once, when the plan is made. Plain data.
struct QuantizeRecipe {
  unsigned threads = 0;
  unsigned shared_bytes = 0;
  std::int64_t tile_rows = 0;
  std::int64_t tile_columns = 0;
  std::int64_t strip = 1;  // tiles of a row that the grid visits before it goes down
  bool row = false;        // axes of the matrix in memory
  bool col = false;
  bool batched = false;
  bool blocked = false;
  bool grouped = false;
  /// The caller sets it for input layout "col": x is (N, M) in memory, or (E, N, M).
  bool transposed = false;
};

/// Throws Error(internal) for a configuration of another kernel.
QuantizeRecipe quantize_recipe(const configure::Configuration& configuration);

/// Launches `function` on `stream`. The tensors have been checked against the options that the configuration
/// was made for. Allocates nothing. A problem without elements launches nothing, unless its groups
/// have scales that no element owns. Throws Error(driver).
void launch_quantize(const driver::Api& api, CUfunction function, const QuantizeRecipe& recipe,
                     const QuantizeArgs& args, CUstream stream);

}  // namespace mxjit::dispatch
