#include "dispatch/gemm_launch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include "dispatch/tensor_check.hpp"
#include "driver/launch.hpp"
#include "gemm/params.cuh"
#include "mxjit/error.hpp"

namespace mxjit::dispatch {
namespace {

using configure::Configuration;

constexpr std::int64_t most_blocks = 0x7FFFFFFF;  // of a grid

int number(const Configuration& configuration, const char* name) {
  return static_cast<int>(std::get<std::int64_t>(configuration.constants.at(name)));
}

// A row-major matrix, `pitch_bytes` a row, cut into boxes.
struct Boxes {
  CUtensorMapDataType type;
  const void* base;
  std::int64_t columns, rows, pitch_bytes;
  int box_columns, box_rows;
  CUtensorMapSwizzle swizzle;
};

template <std::size_t rank>
ptx::TensorMap tensor_map(const driver::Api& api, CUtensorMapDataType type, const void* base,
                          const std::array<std::int64_t, rank>& extents,
                          const std::array<std::int64_t, rank - 1>& pitches,
                          const std::array<int, rank>& boxes, CUtensorMapSwizzle swizzle) {
  CUtensorMap map;
  std::array<cuuint64_t, rank> all;
  std::array<cuuint64_t, rank - 1> bytes;
  std::array<cuuint32_t, rank> box, steps;
  std::ranges::copy(extents, all.begin());
  std::ranges::copy(pitches, bytes.begin());
  std::ranges::copy(boxes, box.begin());
  steps.fill(1);
  const CUresult result =
      api.tensor_map_encode_tiled(&map, type, rank, const_cast<void*>(base), all.data(), bytes.data(),
                                  box.data(), steps.data(), CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle,
                                  CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS) driver::check(api, result, "cuTensorMapEncodeTiled");
  ptx::TensorMap copy;
  static_assert(sizeof copy == sizeof map);
  std::memcpy(&copy, &map, sizeof copy);
  return copy;
}

ptx::TensorMap tensor_map(const driver::Api& api, const Boxes& boxes) {
  return tensor_map<2>(api, boxes.type, boxes.base, {boxes.columns, boxes.rows}, {boxes.pitch_bytes},
                       {boxes.box_columns, boxes.box_rows}, boxes.swizzle);
}

// The n x k matrix of gates and ups, in boxes of `tile` rows: eight gates and their ups in turns.
ptx::TensorMap gated_map(const driver::Api& api, Epilogue epilogue, const void* b, std::int64_t n,
                         std::int64_t k, std::int64_t pitch, int tile) {
  const bool interleaved = epilogue == Epilogue::swiglu_interleaved;
  const std::int64_t next = interleaved ? 2 * pitch : pitch, up = interleaved ? pitch : n / 2 * pitch;
  return tensor_map<4>(api, CU_TENSOR_MAP_DATA_TYPE_UINT8, b, {k, 8, 2, n / 16}, {next, up, 8 * next},
                       {dense_fp8_block_k, 8, 2, tile / 16}, CU_TENSOR_MAP_SWIZZLE_128B);
}

// The swizzle of boxes whose rows are as wide.
CUtensorMapSwizzle swizzle_of(int bytes) {
  return bytes == 128  ? CU_TENSOR_MAP_SWIZZLE_128B
         : bytes == 64 ? CU_TENSOR_MAP_SWIZZLE_64B
                       : CU_TENSOR_MAP_SWIZZLE_32B;
}

const char* at(const Tensor& tensor, std::int64_t elements) {
  if (tensor.data == nullptr) return nullptr;
  return static_cast<const char*>(tensor.data) +
         elements * static_cast<std::int64_t>(size_of_element(tensor.dtype));
}

// Elements between the matrices of a batch; 0 where one serves all.
std::int64_t batch_stride(const Tensor& tensor) {
  return tensor.rank == 3 && tensor.shape[0] > 1 ? tensor.shape[1] * row_pitch(tensor) : 0;
}

// How the scales of an operand of `rows` x `k` are addressed.
struct ScaleStrides {
  std::int64_t row = 0, k = 0, batch = 0;
};

ScaleStrides scale_strides(const std::optional<OperandScale>& scale, const Tensor& scales, bool shared,
                           std::int64_t rows, std::int64_t k) {
  ScaleStrides strides;
  if (!scale || scale->block.kind == Block::Kind::tensor) return strides;
  if (scale->block.kind == Block::Kind::row) {
    strides.row = 1;
    strides.batch = rows;
  } else if (scale->block.kind == Block::Kind::k) {
    strides.k = 1;
    strides.batch = k;
  } else if (scale->layout == ScaleLayout::blocked) {
    strides.batch = ceil_div(rows, 128) * 128 * (ceil_div(ceil_div(k, scale->block.cols), 4) * 4);
  } else {
    const auto last = static_cast<std::size_t>(scales.rank) - 1;
    const std::int64_t pitch = scales.shape[last];
    const bool turned = scale->layout == ScaleLayout::mn_major;
    strides.row = turned ? 1 : pitch;
    strides.k = turned ? pitch : 1;
    strides.batch = scales.shape[last - 1] * pitch;
  }
  if (shared) strides.batch = 0;
  return strides;
}

// The factors of an operand of `rows` rows as boxes of a tile's rows or, 128-blocks, of a stage's, if they
// lie so that the copy engine takes them.
std::optional<Boxes> factor_boxes(const std::optional<OperandScale>& scale, const char* base,
                                  const ScaleStrides& strides, std::int64_t rows, std::int64_t k,
                                  int tile_rows) {
  if (!scale || reinterpret_cast<std::uintptr_t>(base) % 16 != 0) return std::nullopt;
  Boxes boxes{.type = CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
              .base = base,
              .columns = rows,
              .rows = 1,
              .pitch_bytes = ceil_div(rows, 4) * 16,
              .box_columns = tile_rows,
              .box_rows = 1,
              .swizzle = CU_TENSOR_MAP_SWIZZLE_NONE};
  if (scale->block.kind == Block::Kind::row) return boxes;
  if (scale->block.kind != Block::Kind::extents || scale->block.rows != 1) return std::nullopt;
  const bool plain = scale->layout == ScaleLayout::plain;
  boxes.rows = ceil_div(k, dense_fp8_block_k);
  boxes.pitch_bytes = (plain ? strides.row : strides.k) * 4;
  if (plain) {
    std::swap(boxes.columns, boxes.rows);
    boxes.box_columns = dense_fp8_row_factors(plain);
    boxes.box_rows = tile_rows;
  }
  return boxes.pitch_bytes % 16 == 0 ? std::optional(boxes) : std::nullopt;
}

bool shared_in_batch(const Tensor& operand) { return operand.rank != 3 || operand.shape[0] <= 1; }

// For the matrices of a batch from `matrix` on.
GemmOutput output_of(const GemmOptions& options, const GemmArgs& args, const GemmSizes& sizes,
                     std::int64_t matrix = 0) {
  GemmOutput output{};
  // One scale serves every row; a single row's own is the same.
  output.d_scale_stride = args.d_scale.rank == 1 && args.d_scale.shape[0] == 1 ? 0 : 1;
  output.d_scale = reinterpret_cast<const float*>(at(args.d_scale, matrix * sizes.m * output.d_scale_stride));
  if (options.requant) {
    const OperandScale blocks{.scaling = options.requant->scaling,
                              .block = options.requant->block,
                              .layout = options.requant->layout};
    const std::int64_t columns = args.d.shape[static_cast<std::size_t>(args.d.rank) - 1];
    const ScaleStrides strides =
        scale_strides(blocks, args.d_scales, shared_in_batch(args.d), sizes.m, columns);
    output.d_scales = const_cast<char*>(at(args.d_scales, matrix * strides.batch));
    output.scale_row_stride = strides.row;
    output.scale_block_stride = strides.k;
    output.scale_batch_stride = strides.batch;
  }
  output.amax = static_cast<u32*>(args.amax.data);
  output.amax_cap = args.amax_cap;
  output.swiglu_alpha = args.swiglu_alpha;
  output.swiglu_limit = args.swiglu_limit.value_or(std::numeric_limits<float>::infinity());
  output.swiglu_shift = args.swiglu_limit ? 1.0F : -0.0F;
  return output;
}

void launch_dense(const driver::Api& api, driver::LoadedKernel kernel, const GemmRecipe& recipe,
                  const GemmOptions& options, const GemmArgs& args, const GemmSizes& sizes, CUstream stream) {
  const ScaleStrides a_scales =
      scale_strides(options.a_scale, args.a_scale, shared_in_batch(args.a), sizes.m, sizes.k);
  const ScaleStrides b_scales =
      scale_strides(options.b_scale, args.b_scale, shared_in_batch(args.b), sizes.n, sizes.k);
  const std::int64_t tiles = ceil_div(sizes.m, recipe.block_m) * ceil_div(sizes.n, recipe.block_n);
  const auto blocks = static_cast<unsigned>(std::min<std::int64_t>(tiles, recipe.sm_count));
  // More work than that gains nothing by an early start, measured; tools/bench/README.md.
  if (tiles > recipe.sm_count) kernel.start = driver::Start::in_order;
  const int element = static_cast<int>(size_of_element(args.d.dtype));
  const bool gated = options.epilogue != Epilogue::none;
  const std::int64_t d_columns = gated ? sizes.n / 2 : sizes.n;
  const int out_columns = dense_fp8_out_columns(recipe.block_n, gated);
  // Rows past M cost as much as others: the copy engine fills them.
  const auto a_rows = static_cast<int>(std::min<std::int64_t>(recipe.block_m, ceil_div(sizes.m, 8) * 8));
  for (std::int64_t i = 0; i < sizes.batch; ++i) {
    GemmDenseFp8Params params{};
    params.a = tensor_map(api, {CU_TENSOR_MAP_DATA_TYPE_UINT8, at(args.a, i * batch_stride(args.a)), sizes.k,
                                sizes.m, row_pitch(args.a), 128, a_rows, CU_TENSOR_MAP_SWIZZLE_128B});
    const char* const b = at(args.b, i * batch_stride(args.b));
    params.b = gated
                   ? gated_map(api, options.epilogue, b, sizes.n, sizes.k, row_pitch(args.b), recipe.block_n)
                   : tensor_map(api, {CU_TENSOR_MAP_DATA_TYPE_UINT8, b, sizes.k, sizes.n, row_pitch(args.b),
                                      128, recipe.block_n, CU_TENSOR_MAP_SWIZZLE_128B});
    const char* const d = at(args.d, i * batch_stride(args.d));
    if (recipe.bulk_store)
      params.d = tensor_map(
          api, {element == 2 ? CU_TENSOR_MAP_DATA_TYPE_UINT16 : CU_TENSOR_MAP_DATA_TYPE_UINT8, d, d_columns,
                sizes.m, row_pitch(args.d) * element, out_columns, 16, swizzle_of(out_columns * element)});
    GemmArguments& g = params.arguments;
    const char* const a_scale = at(args.a_scale, i * a_scales.batch);
    const char* const b_scale = at(args.b_scale, i * b_scales.batch);
    if (const auto boxes =
            factor_boxes(options.a_scale, a_scale, a_scales, sizes.m, sizes.k, recipe.block_m)) {
      params.a_scale = tensor_map(api, *boxes);
      g.a_scale_boxes = 1;
    }
    // Gates' and ups' factors lie in no box.
    if (const auto boxes =
            gated ? std::nullopt
                  : factor_boxes(options.b_scale, b_scale, b_scales, sizes.n, sizes.k, recipe.block_n)) {
      params.b_scale = tensor_map(api, *boxes);
      g.b_scale_boxes = 1;
    }
    g.a_scale = reinterpret_cast<const float*>(a_scale);
    g.b_scale = reinterpret_cast<const float*>(b_scale);
    g.bias = args.bias.data;
    if (args.beta != 0.0F) {
      g.c = at(args.c, i * batch_stride(args.c));
      g.ld_c = row_pitch(args.c);
    }
    g.d = const_cast<char*>(d);
    g.ld_d = row_pitch(args.d);
    g.m = static_cast<i32>(sizes.m);
    g.n = static_cast<i32>(sizes.n);
    g.k = static_cast<i32>(sizes.k);
    g.a_rows = a_rows;
    g.ld_a_scale = static_cast<i32>(std::max(a_scales.row, a_scales.k));
    g.ld_b_scale = static_cast<i32>(std::max(b_scales.row, b_scales.k));
    g.alpha = args.alpha;
    g.beta = args.beta;
    g.output = output_of(options, args, sizes, i);
    driver::launch(api, kernel, {.x = blocks}, &params, stream);
  }
}

GemmOperand general_operand(const Tensor& tensor, const Tensor& scales,
                            const std::optional<OperandScale>& scale, std::int64_t rows, std::int64_t k) {
  const ScaleStrides strides = scale_strides(scale, scales, shared_in_batch(tensor), rows, k);
  return {.data = tensor.data,
          .scale = scales.data,
          .pitch = row_pitch(tensor),
          .batch_stride = batch_stride(tensor),
          .scale_row_stride = strides.row,
          .scale_k_stride = strides.k,
          .scale_batch_stride = strides.batch};
}

void launch_general(const driver::Api& api, const driver::LoadedKernel& kernel, const GemmRecipe& recipe,
                    const GemmOptions& options, const GemmArgs& args, const GemmSizes& sizes,
                    CUstream stream) {
  const std::int64_t columns = std::int64_t{general_tile} * recipe.passes;  // of a block
  const std::int64_t tiles_m = ceil_div(sizes.m, general_tile), tiles_n = ceil_div(sizes.n, columns);
  if (tiles_m > most_blocks / tiles_n || tiles_m * tiles_n > most_blocks / sizes.batch)
    throw Error(ErrorCode::unsupported,
                fmt::format("d: {} x {} x {} needs more tiles of {} x {} than a grid holds", sizes.batch,
                            sizes.m, sizes.n, general_tile, columns),
                "d");
  GemmGeneralParams params{};
  params.a = general_operand(args.a, args.a_scale, options.a_scale, sizes.m, sizes.k);
  params.b = general_operand(args.b, args.b_scale, options.b_scale, sizes.n, sizes.k);
  params.output = output_of(options, args, sizes);
  params.bias = args.bias.data;
  if (args.beta != 0.0F) {
    params.c = args.c.data;
    params.ld_c = row_pitch(args.c);
    params.batch_c = batch_stride(args.c);
  }
  params.d = args.d.data;
  params.ld_d = row_pitch(args.d);
  params.batch_d = batch_stride(args.d);
  params.m = sizes.m;
  params.n = sizes.n;
  params.k = sizes.k;
  params.tiles_m = static_cast<u32>(tiles_m);
  params.tiles_n = static_cast<u32>(tiles_n);
  params.alpha = args.alpha;
  params.beta = args.beta;
  driver::launch(api, kernel, {.x = static_cast<unsigned>(tiles_m * tiles_n * sizes.batch)}, &params, stream);
}

}  // namespace

GemmRecipe gemm_recipe(const Configuration& configuration, int sm_count) {
  GemmRecipe recipe;
  recipe.sm_count = static_cast<unsigned>(sm_count);
  if (configuration.kernel == "gemm/general") {
    recipe.passes = number(configuration, "passes");
    return recipe;
  }
  if (configuration.kernel != "gemm/dense_fp8")
    throw Error(ErrorCode::internal, "no launch for kernel \"" + configuration.kernel + "\"");
  recipe.dense = true;
  recipe.block_m = number(configuration, "block_m");
  recipe.block_n = number(configuration, "block_n");
  recipe.bulk_store = std::get<bool>(configuration.constants.at("tma_store"));
  return recipe;
}

void clear_amax(const driver::Api& api, const GemmOptions& options, const GemmArgs& args, CUstream stream) {
  if (!options.amax) return;
  const CUresult result =
      api.memset_d8_async(reinterpret_cast<CUdeviceptr>(args.amax.data), 0, sizeof(float), stream);
  if (result != CUDA_SUCCESS) driver::check(api, result, "cuMemsetD8Async");
}

void launch_gemm(const driver::Api& api, driver::LoadedKernel kernel, const GemmRecipe& recipe,
                 const GemmOptions& options, const GemmArgs& args, const GemmSizes& sizes, CUstream stream) {
  clear_amax(api, options, args, stream);
  if (options.amax) kernel.start = driver::Start::in_order;  // what is ahead of it is no kernel
  if (sizes.batch == 0 || sizes.m == 0 || sizes.n == 0) return;
  if (recipe.dense) return launch_dense(api, kernel, recipe, options, args, sizes, stream);
  launch_general(api, kernel, recipe, options, args, sizes, stream);
}

}  // namespace mxjit::dispatch
