#include "dispatch/quantize_launch.hpp"

#include <algorithm>
#include <utility>

#include "mxjit/error.hpp"
#include "quantize/params.cuh"

namespace mxjit::dispatch {
namespace {

using configure::Configuration;

std::int64_t number(const Configuration& configuration, const char* name) {
  return std::get<std::int64_t>(configuration.constants.at(name));
}

bool flag(const Configuration& configuration, const char* name) {
  return std::get<bool>(configuration.constants.at(name));
}

/// Of the grid's y and z.
constexpr std::int64_t grid_limit = 65535;

constexpr std::int64_t ceil_div(std::int64_t value, std::int64_t by) { return (value + by - 1) / by; }

std::int64_t pitch_of(const Tensor& tensor) {
  return tensor.pitch != 0 ? tensor.pitch : tensor.shape[static_cast<std::size_t>(tensor.rank) - 1];
}

unsigned aligned(const void* base, std::int64_t pitch_bytes, unsigned to) {
  return ((reinterpret_cast<std::uintptr_t>(base) | static_cast<std::uintptr_t>(pitch_bytes)) & (to - 1)) ==
         0;
}

/// 1-D blocked scales have no pitch: the matrix's extents say where a tile lies.
std::int64_t scale_pitch(const QuantizeRecipe& recipe, const Tensor& scales) {
  return recipe.blocked ? 0 : pitch_of(scales);
}

}  // namespace

QuantizeRecipe quantize_recipe(const Configuration& configuration) {
  if (configuration.kernel != "quantize/mx") {
    throw Error(ErrorCode::internal, "no launch for kernel \"" + configuration.kernel + "\"");
  }
  QuantizeRecipe recipe;
  recipe.threads = static_cast<unsigned>(configuration.threads);
  recipe.shared_bytes = static_cast<unsigned>(configuration.shared_bytes);
  recipe.tile_rows = 2 * number(configuration, "rows_per_lane") * number(configuration, "warps_m");
  recipe.tile_columns = 128 * number(configuration, "warps_n");
  // Columns alone are written in the longest runs by narrow strips; rows want the strip as wide as they are.
  constexpr std::int64_t whole_row = std::int64_t{1} << 30;
  recipe.strip = flag(configuration, "row") ? whole_row : 2;
  recipe.row = flag(configuration, "row");
  recipe.col = flag(configuration, "col");
  recipe.batched = flag(configuration, "batched");
  recipe.grouped = number(configuration, "group_alignment") > 0;
  recipe.blocked =
      std::get<std::string>(configuration.constants.at("scale_layout")) == "ScaleLayout::blocked";
  return recipe;
}

void launch_quantize(const driver::Api& api, CUfunction function, const QuantizeRecipe& recipe,
                     const QuantizeArgs& args, CUstream stream) {
  const Tensor *q_row = &args.q_row, *s_row = &args.s_row, *q_col = &args.q_col, *s_col = &args.s_col;
  if (recipe.transposed) {
    std::swap(q_row, q_col);
    std::swap(s_row, s_col);
  }
  const auto rank = static_cast<std::size_t>(args.x.rank);
  const std::int64_t m = args.x.shape[rank - 2], n = args.x.shape[rank - 1];  // as stored
  const std::int64_t experts = recipe.batched ? args.x.shape[0] : 1;
  if ((m == 0 && !recipe.grouped) || n == 0 || experts == 0) return;

  const std::int64_t tiles_m = ceil_div(std::max<std::int64_t>(m, 1), recipe.tile_rows);
  const std::int64_t tiles_n = ceil_div(n, recipe.tile_columns);
  std::int64_t strip = std::min(recipe.strip, tiles_n);
  if (ceil_div(tiles_n, strip) * experts > grid_limit) strip = tiles_n;
  const std::int64_t strips = ceil_div(tiles_n, strip);
  QuantizeMxParams params{};
  params.x = args.x.data;
  params.m = m;
  params.n = n;
  params.ld_x = args.x.pitch != 0 ? args.x.pitch : n;
  params.tiles_n = static_cast<u32>(tiles_n);
  params.strips = static_cast<u32>(strips);
  params.wide = wide_all;
  const auto narrow = [&params](u32 bit, const void* base, std::int64_t pitch_bytes, unsigned to) {
    if (!aligned(base, pitch_bytes, to)) params.wide &= ~bit;
  };
  narrow(wide_x, params.x, params.ld_x * (args.x.dtype == DType::fp32 ? 4 : 2), 16);
  const unsigned codes = recipe.blocked ? 16 : 4;
  if (recipe.row) {
    params.q_row = static_cast<u8*>(q_row->data);
    params.s_row = static_cast<u8*>(s_row->data);
    params.ld_q_row = pitch_of(*q_row);
    params.ld_s_row = scale_pitch(recipe, *s_row);
    narrow(wide_q_row, params.q_row, params.ld_q_row, 8);
    narrow(wide_s_row, params.s_row, params.ld_s_row, codes);
  }
  if (recipe.col) {
    params.q_col = static_cast<u8*>(q_col->data);
    params.s_col = static_cast<u8*>(s_col->data);
    params.ld_q_col = pitch_of(*q_col);
    params.ld_s_col = scale_pitch(recipe, *s_col);
    narrow(wide_q_col, params.q_col, params.ld_q_col, 16);
    narrow(wide_s_col, params.s_col, params.ld_s_col, codes);
  }

  if (recipe.grouped) {
    params.offsets = static_cast<const i32*>(args.offsets.data);
    params.groups = static_cast<i32>(args.offsets.shape[0]);
    params.status = static_cast<i32*>(args.status.data);
  }

  CUlaunchConfig config{};
  config.gridDimX = static_cast<unsigned>(strip);
  config.blockDimX = recipe.threads;
  config.blockDimY = config.blockDimZ = 1;
  config.sharedMemBytes = recipe.shared_bytes;
  config.hStream = stream;
  void* arguments[] = {&params};
  for (std::int64_t expert = 0; expert < experts; expert += grid_limit) {
    params.first_expert = static_cast<u32>(expert);
    config.gridDimZ = static_cast<unsigned>(strips * std::min(grid_limit, experts - expert));
    for (std::int64_t tile = 0; tile < tiles_m; tile += grid_limit) {
      params.first_tile_m = static_cast<u32>(tile);
      config.gridDimY = static_cast<unsigned>(std::min(grid_limit, tiles_m - tile));
      const CUresult result = api.launch_kernel_ex(&config, function, arguments, nullptr);
      if (result != CUDA_SUCCESS) driver::check(api, result, "cuLaunchKernelEx");
    }
  }
}

}  // namespace mxjit::dispatch
