#include "dispatch/quantize_launch.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "dispatch/quantize_key.hpp"
#include "dispatch/quantize_workspace.hpp"
#include "dispatch/tensor_check.hpp"
#include "driver/launch.hpp"
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

QuantizeRecipe::Kernel kernel_of(const std::string& name) {
  if (name == "quantize/mx" || name == "quantize/fp32") return QuantizeRecipe::Kernel::tiles;
  if (name == "quantize/fp32_passes") return QuantizeRecipe::Kernel::passes;
  if (name == "quantize/norm") return QuantizeRecipe::Kernel::norm;
  if (name == "quantize/rows") return QuantizeRecipe::Kernel::rows;
  throw Error(ErrorCode::internal, "no launch for kernel \"" + name + "\"");
}

/// How two passes over tiles share the cache: strips of so many tiles across, as high as the matrix, the
/// first pass so many strips ahead.
struct Strips {
  std::int64_t tiles;
  std::int64_t lead;
};

Strips strips_of(const QuantizeRecipe& recipe, std::int64_t tiles_m, std::int64_t tiles_n,
                 std::int64_t element) {
  constexpr std::int64_t most = std::int64_t{1} << 30;
  if (recipe.options.block.kind == Block::Kind::tensor) return {tiles_n, most};
  // A third of what a strip and two ahead of it may take of the smallest cache, 50 MB; more than the thread
  // blocks that run at once have.
  constexpr std::int64_t strip_bytes = std::int64_t{12} << 20;
  const std::int64_t column = tiles_m * recipe.tile_rows * recipe.tile_columns * element;
  // Rows are whole when the first pass has been over all of them.
  const std::int64_t tiles =
      recipe.row ? tiles_n : std::clamp(strip_bytes / column, std::int64_t{1}, tiles_n);
  return {tiles, tiles * column <= strip_bytes ? 2 : 1};
}

/// The values of a call with SwiGLU. Where fp32 never does, all elements are computed in double.
SwigluParams swiglu_params(const QuantizeArgs& args) {
  // What the kernel's fp32 arithmetic holds for.
  constexpr double largest_power = 88.0;  // beyond these two, 2^x or a quotient by it leaves fp32
  constexpr double largest_exponent = 0x1p36;
  constexpr double largest_rest = 0x1.6a09e6p-12;  // 2^-11.5: half its square is 2^-24
  constexpr double largest_gate = 0x1p100;         // times what a subnormal factor lacks, 2^-150
  constexpr double log2_e = 1.4426950408889634, ln_2 = 0.6931471805599453;
  constexpr double infinity = std::numeric_limits<double>::infinity();
  SwigluParams swiglu{};
  swiglu.alpha = args.swiglu_alpha;
  swiglu.limit = args.swiglu_limit.value_or(infinity);
  swiglu.fast_limit = static_cast<float>(swiglu.limit);
  const double exponent = -args.swiglu_alpha * log2_e;
  if (static_cast<double>(swiglu.fast_limit) == swiglu.limit && std::fabs(exponent) <= largest_exponent) {
    const u32 bits = std::bit_cast<u32>(static_cast<float>(exponent));
    swiglu.exponent = std::bit_cast<float>((bits + 0x80) & 0xFFFFFF00);
    const double rest = (exponent - static_cast<double>(swiglu.exponent)) * ln_2;
    swiglu.exponent_rest = static_cast<float>(rest);
    const double most =
        std::min({largest_power / std::fabs(exponent), largest_rest / std::fabs(rest), largest_gate});
    swiglu.exact_from = std::bit_cast<u32>(static_cast<float>(most)) & 0xFFFF0000;
  }
  return swiglu;
}

/// A plan serves other numbers of groups than the call's that it was made for.
QuantizeWorkspace workspace_of(const QuantizeRecipe& recipe, const QuantizeArgs& args) {
  if (!recipe.grouped) return quantize_workspace(recipe.options, args.x);
  QuantizeOptions options = recipe.options;
  options.groups.count = static_cast<std::int32_t>(args.offsets.shape[0]);
  return quantize_workspace(options, args.x);
}

/// What all launches of a call share. Extents are those of the matrix in memory.
QuantizeParams params_of(const QuantizeRecipe& recipe, const QuantizeArgs& args,
                         const QuantizeWorkspace& workspace) {
  const Tensor *q_row = &args.q_row, *s_row = &args.s_row, *q_col = &args.q_col, *s_col = &args.s_col;
  if (recipe.options.transposed_input) {
    std::swap(q_row, q_col);
    std::swap(s_row, s_col);
  }
  const auto rank = static_cast<std::size_t>(args.x.rank);
  QuantizeParams params{};
  params.x = args.x.data;
  params.m = args.x.shape[rank - 2];
  params.n = args.x.shape[rank - 1];
  params.ld_x = pitch_of(args.x);
  params.expert_x = params.m * params.ld_x;
  if (is_swiglu(recipe.options.pre)) {
    params.swiglu = swiglu_params(args);
    if (!recipe.options.transposed_input) {
      params.n /= 2;
      params.swiglu.up = params.n;
    } else {
      params.m /= 2;
      const bool alternate = recipe.options.pre == Pre::swiglu_interleaved;
      params.swiglu.up = alternate ? params.ld_x : params.m * params.ld_x;
      if (alternate) params.ld_x *= 2;
    }
  }
  params.amax_cap = args.amax_cap > 0 ? args.amax_cap : std::numeric_limits<float>::infinity();
  params.wide = wide_all;
  const auto narrow = [&params](u32 bit, const void* base, std::int64_t pitch_bytes, unsigned to) {
    if (!aligned(base, pitch_bytes, to)) params.wide &= ~bit;
  };
  const std::int64_t element = args.x.dtype == DType::fp32 ? 4 : 2;
  narrow(wide_x, params.x, params.ld_x * element, 16);
  narrow(wide_x, params.x, params.swiglu.up * element, 16);
  const unsigned codes = recipe.blocked ? 16 : 4;
  if (recipe.row) {
    params.q_row = static_cast<u8*>(q_row->data);
    params.s_row = s_row->data;
    params.ld_q_row = pitch_of(*q_row);
    params.ld_s_row = scale_pitch(recipe, *s_row);
    narrow(wide_q_row, params.q_row, params.ld_q_row, recipe.q_row_bytes);
    narrow(wide_s_row, params.s_row, params.ld_s_row, codes);
  }
  if (recipe.col) {
    params.q_col = static_cast<u8*>(q_col->data);
    params.s_col = s_col->data;
    params.ld_q_col = pitch_of(*q_col);
    params.ld_s_col = scale_pitch(recipe, *s_col);
    narrow(wide_q_col, params.q_col, params.ld_q_col, 16);
    narrow(wide_s_col, params.s_col, params.ld_s_col, codes);
  }
  params.weight = args.weight.data;
  params.eps = args.rms_eps;
  if (recipe.options.emit_high) {
    params.y = static_cast<u16*>(args.y.data);
    params.ld_y = pitch_of(args.y);
    narrow(wide_y, params.y, params.ld_y * 2, 16);
  }
  if (recipe.grouped) {
    params.offsets = static_cast<const i32*>(args.offsets.data);
    params.groups = static_cast<i32>(args.offsets.shape[0]);
    params.status = static_cast<i32*>(args.status.data);
  }
  if (workspace.bytes() > 0) {
    auto* const base = static_cast<u8*>(args.workspace.data);
    params.amax_row = reinterpret_cast<u32*>(base);
    params.amax_col = reinterpret_cast<u32*>(base + workspace.row_bytes);
    params.sums = reinterpret_cast<double*>(base + workspace.row_bytes + workspace.col_bytes);
    params.progress =
        reinterpret_cast<u32*>(base + workspace.row_bytes + workspace.col_bytes + workspace.sum_bytes);
  }
  return params;
}

}  // namespace

QuantizeRecipe quantize_recipe(const Configuration& configuration, const QuantizeOptions& options) {
  QuantizeRecipe recipe;
  recipe.kernel = kernel_of(configuration.kernel);
  recipe.options = options;
  recipe.grouped = number(configuration, "group_alignment") > 0;
  recipe.empty_scales = options.block.kind != Block::Kind::extents;
  if (recipe.kernel == QuantizeRecipe::Kernel::rows) {
    const std::int64_t teams = configuration.threads / (32 * number(configuration, "warps"));
    recipe.tile_rows = teams * number(configuration, "rows");
    recipe.row = true;
    recipe.batched = flag(configuration, "batched");
    recipe.blocked = options.scale_layout == ScaleLayout::blocked;
    if (std::get<std::string>(configuration.constants.at("input")) == "Input::fp32") recipe.q_row_bytes = 4;
    return recipe;
  }
  const std::int64_t lanes_across = number(configuration, "lanes_across");
  recipe.tile_rows =
      32 / lanes_across * number(configuration, "rows_per_lane") * number(configuration, "warps_m");
  recipe.tile_columns = 8 * lanes_across * number(configuration, "warps_n");
  // Columns alone are written in the longest runs by narrow strips; rows want the strip as wide as they are.
  constexpr std::int64_t whole_row = std::int64_t{1} << 30;
  recipe.strip = flag(configuration, "row") ? whole_row : 2;
  recipe.batched = flag(configuration, "batched");
  recipe.blocked = options.scale_layout == ScaleLayout::blocked;
  recipe.row = flag(configuration, "row");
  recipe.col = flag(configuration, "col");
  return recipe;
}

void launch_quantize(const driver::Api& api, driver::LoadedKernel kernel, const QuantizeRecipe& recipe,
                     const QuantizeArgs& args, CUstream stream) {
  const QuantizeWorkspace workspace = workspace_of(recipe, args);
  QuantizeParams params = params_of(recipe, args, workspace);
  std::int64_t experts = args.x.rank == 3 ? args.x.shape[0] : 1;
  if (recipe.options.block.kind == Block::Kind::tensor && experts == 0) {
    experts = 1;  // of no rows: its scale is written
    params.m = 0;
  }
  const bool empty = params.m == 0 || params.n == 0;
  if (experts == 0 || (empty && !recipe.grouped && !recipe.empty_scales)) return;

  driver::GridExtents blocks;
  const auto launch = [&] { driver::launch(api, kernel, blocks, &params, stream); };
  if (recipe.kernel == QuantizeRecipe::Kernel::rows) {
    if (!recipe.batched) params.m *= std::exchange(experts, 1);
    const ScaleLayout layout = recipe.options.scale_layout;
    const std::int64_t padding = layout == ScaleLayout::blocked    ? 128
                                 : layout == ScaleLayout::mn_major ? 4
                                                                   : 1;
    const std::int64_t rows = ceil_div(std::max<std::int64_t>(params.m, 1), padding) * padding;
    blocks.x = static_cast<unsigned>(ceil_div(rows, recipe.tile_rows));
    for (std::int64_t expert = 0; expert < experts; expert += grid_limit) {
      params.first_expert = static_cast<u32>(expert);
      blocks.y = static_cast<unsigned>(std::min(grid_limit, experts - expert));
      launch();
    }
    return;
  }
  // Small tiles, too, cover all of a blocked tile of codes.
  const auto tiles_of = [&](std::int64_t extent, std::int64_t tile) {
    const std::int64_t unit = recipe.blocked ? std::max<std::int64_t>(tile, 128) : tile;
    return ceil_div(std::max<std::int64_t>(extent, 1), unit) * (unit / tile);
  };
  const std::int64_t tiles_m = tiles_of(params.m, recipe.tile_rows);
  const std::int64_t tiles_n = tiles_of(params.n, recipe.tile_columns);
  // Thread blocks that take numbers, and count in a workspace.
  const auto launch_counting = [&](std::int64_t count) {
    if (count > std::numeric_limits<std::int32_t>::max())
      throw Error(ErrorCode::unsupported, "x: more tiles than a grid holds", "x");
    const auto memory = reinterpret_cast<CUdeviceptr>(args.workspace.data);
    const auto bytes = static_cast<std::size_t>(workspace.bytes());
    driver::check(api, api.memset_d8_async(memory, 0, bytes, stream), "cuMemsetD8Async");
    kernel.start = driver::Start::in_order;  // what is ahead of it is no kernel
    params.tiles_n = static_cast<u32>(tiles_n);
    blocks.x = static_cast<unsigned>(count);
    launch();
  };
  if (recipe.kernel == QuantizeRecipe::Kernel::norm) {
    const bool turned = recipe.options.transposed_input;
    const std::int64_t lines = turned ? tiles_n : tiles_m, tiles = turned ? tiles_m : tiles_n;
    // As many tiles as the smallest cache holds, 50 MB, with some to spare; more than run at once.
    constexpr std::int64_t ahead = 768;
    params.strips = static_cast<u32>(lines);
    params.strip = static_cast<u32>(tiles);
    params.lead = static_cast<u32>(std::max<std::int64_t>(ahead / tiles, 1));
    const bool spans = recipe.options.block.kind != Block::Kind::extents;
    return launch_counting((spans ? 3 : 2) * experts * lines * tiles);
  }
  if (recipe.kernel == QuantizeRecipe::Kernel::passes) {
    const Strips strips = strips_of(recipe, tiles_m, tiles_n, args.x.dtype == DType::fp32 ? 4 : 2);
    const std::int64_t across = ceil_div(tiles_n, strips.tiles);
    params.strips = static_cast<u32>(across);
    params.strip = static_cast<u32>(strips.tiles);
    params.lead = static_cast<u32>(strips.lead);
    const std::int64_t count = experts * across * strips.tiles * tiles_m;
    if (recipe.options.block.kind == Block::Kind::tensor && count <= std::int64_t{most_slots}) {
      params.tiles_n = static_cast<u32>(tiles_n);
      blocks.x = static_cast<unsigned>(count);
      params.passes = Passes::first;
      launch();
      params.passes = Passes::second;
      // Whatever the context says: what is ahead of it is the first pass.
      kernel.start = driver::Start::early;
      return launch();
    }
    return launch_counting(2 * count);
  }
  std::int64_t strip = std::min(recipe.strip, tiles_n);
  if (ceil_div(tiles_n, strip) * experts > grid_limit) strip = tiles_n;
  const std::int64_t strips = ceil_div(tiles_n, strip);
  params.tiles_n = static_cast<u32>(tiles_n);
  params.strips = static_cast<u32>(strips);
  blocks.x = static_cast<unsigned>(strip);
  for (std::int64_t expert = 0; expert < experts; expert += grid_limit) {
    params.first_expert = static_cast<u32>(expert);
    blocks.z = static_cast<unsigned>(strips * std::min(grid_limit, experts - expert));
    for (std::int64_t tile = 0; tile < tiles_m; tile += grid_limit) {
      params.first_tile_m = static_cast<u32>(tile);
      blocks.y = static_cast<unsigned>(std::min(grid_limit, tiles_m - tile));
      launch();
    }
  }
}

}  // namespace mxjit::dispatch
