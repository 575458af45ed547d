// From a loaded quantize kernel and checked tensors to a launch.
#pragma once

#include <cstdint>

#include "configure/configuration.hpp"
#include "driver/loaded_kernel.hpp"
#include "mxjit/quantize.hpp"

namespace mxjit::dispatch {

/// What a launch needs to know of a configuration, found out once, when the plan is made. Plain data.
struct QuantizeRecipe {
  enum class Kernel : std::uint8_t {
    tiles,   // a thread block a tile
    passes,  // in one launch, two thread blocks a tile, with a workspace that is zero at first; or two
             // launches
    norm,    // in one launch, two or three thread blocks a tile, with such a workspace
    rows     // thread blocks that each have some rows, of whatever expert
  };
  Kernel kernel = Kernel::tiles;
  std::int64_t tile_rows = 0;  // rows: what a thread block has
  std::int64_t tile_columns = 0;
  std::int64_t strip = 1;  // tiles of a row that the grid visits before it goes down
  bool row = false;        // axes of the matrix in memory
  bool col = false;
  bool batched = false;
  bool blocked = false;
  bool grouped = false;
  bool empty_scales = false;  // scales of rows and columns without elements exist and are written
  unsigned q_row_bytes = 8;   // that a lane writes at once
  QuantizeOptions options;    // of the call; transposed input: x is (N, M) in memory, or (E, N, M)
};

/// Of a configuration of a call with `options`. Throws Error(internal) for a configuration of another kernel.
QuantizeRecipe quantize_recipe(const configure::Configuration& configuration, const QuantizeOptions& options);

/// Launches `kernel` on `stream`. The tensors have been checked against the options that the configuration
/// was made for. Allocates nothing. Launches nothing where no output has an element. Throws Error(driver).
void launch_quantize(const driver::Api& api, driver::LoadedKernel kernel, const QuantizeRecipe& recipe,
                     const QuantizeArgs& args, CUstream stream);

}  // namespace mxjit::dispatch
