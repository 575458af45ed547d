#include "capi/convert.hpp"

#include <fmt/format.h>

#include "capi/guard.hpp"
#include "capi/sized.hpp"

namespace mxjit::capi {
namespace {

// The enumerators of both interfaces are the same numbers.
template <auto last, auto c_last>
constexpr bool same = static_cast<int>(last) == static_cast<int>(c_last);
static_assert(same<DType::bf16, MXJIT_BF16> && same<DType::e4m3, MXJIT_E4M3> &&
              same<DType::e8m0, MXJIT_E8M0> && same<DType::i32, MXJIT_I32> &&
              same<DType::boolean, MXJIT_BOOLEAN>);
static_assert(same<Scaling::mx, MXJIT_SCALING_MX> && same<Scaling::fp32, MXJIT_SCALING_FP32>);
static_assert(same<Rounding::rceil, MXJIT_ROUNDING_RCEIL> && same<Rounding::floor, MXJIT_ROUNDING_FLOOR> &&
              same<Rounding::ceil, MXJIT_ROUNDING_CEIL> && same<Rounding::even, MXJIT_ROUNDING_EVEN> &&
              same<Rounding::none, MXJIT_ROUNDING_NONE> && same<Rounding::pow2, MXJIT_ROUNDING_POW2>);
static_assert(same<ScaleLayout::plain, MXJIT_LAYOUT_PLAIN> &&
              same<ScaleLayout::blocked, MXJIT_LAYOUT_BLOCKED> &&
              same<ScaleLayout::mn_major, MXJIT_LAYOUT_MN_MAJOR>);
static_assert(same<Block::Kind::extents, MXJIT_BLOCK_EXTENTS> && same<Block::Kind::row, MXJIT_BLOCK_ROW> &&
              same<Block::Kind::tensor, MXJIT_BLOCK_TENSOR> && same<Block::Kind::k, MXJIT_BLOCK_K>);
static_assert(same<Accumulation::promote, MXJIT_ACCUMULATION_PROMOTE> &&
              same<Accumulation::fast, MXJIT_ACCUMULATION_FAST> &&
              same<Accumulation::exact, MXJIT_ACCUMULATION_EXACT>);
static_assert(same<Epilogue::none, MXJIT_EPILOGUE_NONE> && same<Epilogue::swiglu, MXJIT_EPILOGUE_SWIGLU> &&
              same<Epilogue::swiglu_interleaved, MXJIT_EPILOGUE_SWIGLU_INTERLEAVED>);

static_assert(same<Placement::dense, MXJIT_PLACEMENT_DENSE> &&
              same<Placement::m_groups, MXJIT_PLACEMENT_M_GROUPS> &&
              same<Placement::k_groups, MXJIT_PLACEMENT_K_GROUPS> &&
              same<Placement::per_expert, MXJIT_PLACEMENT_PER_EXPERT>);
static_assert(same<Pre::none, MXJIT_PRE_NONE> && same<Pre::swiglu, MXJIT_PRE_SWIGLU> &&
              same<Pre::swiglu_interleaved, MXJIT_PRE_SWIGLU_INTERLEAVED> &&
              same<Pre::rmsnorm, MXJIT_PRE_RMSNORM>);

constexpr mxjit_context_options default_context = MXJIT_CONTEXT_OPTIONS_INIT;
constexpr mxjit_quantize_options default_quantize = MXJIT_QUANTIZE_OPTIONS_INIT;
constexpr mxjit_quantize_args no_quantize_args = MXJIT_QUANTIZE_ARGS_INIT;
constexpr mxjit_gemm_options default_gemm = MXJIT_GEMM_OPTIONS_INIT;
constexpr mxjit_gemm_args no_gemm_args = MXJIT_GEMM_ARGS_INIT;
constexpr mxjit_dequantize_options default_dequantize = MXJIT_DEQUANTIZE_OPTIONS_INIT;
constexpr mxjit_dequantize_args no_dequantize_args = MXJIT_DEQUANTIZE_ARGS_INIT;
constexpr mxjit_pack_scales_options default_pack_scales = MXJIT_PACK_SCALES_OPTIONS_INIT;
constexpr mxjit_pack_scales_args no_pack_scales_args = MXJIT_PACK_SCALES_ARGS_INIT;
constexpr mxjit_pad_groups_options default_pad_groups = MXJIT_PAD_GROUPS_OPTIONS_INIT;
constexpr mxjit_pad_groups_args no_pad_groups_args = MXJIT_PAD_GROUPS_ARGS_INIT;
constexpr mxjit_unpad_groups_args no_unpad_groups_args = MXJIT_UNPAD_GROUPS_ARGS_INIT;

[[noreturn, gnu::cold]] void refuse_value(const char* owner, const char* field, const char* constants,
                                          std::int32_t came) {
  const std::string argument = fmt::format("{}.{}", owner, field);
  throw Error(ErrorCode::invalid_argument, fmt::format("{}: expected {}, got {}", argument, constants, came),
              argument);
}

// `last` is the set's largest; its enumerators count from 0.
template <auto last>
decltype(last) enumerator(std::int32_t value, const char* owner, const char* field, const char* constants) {
  if (value < 0 || value > static_cast<std::int32_t>(last)) [[unlikely]]
    refuse_value(owner, field, constants, value);
  return static_cast<decltype(last)>(value);
}

DType dtype(std::int32_t value, const char* owner, const char* field) {
  return enumerator<DType::boolean>(value, owner, field, "a dtype, MXJIT_BF16 to MXJIT_BOOLEAN");
}

Block block(std::int32_t kind, std::int32_t rows, std::int32_t cols, const char* owner) {
  return {enumerator<Block::Kind::k>(kind, owner, "block_kind", "MXJIT_BLOCK_EXTENTS, _ROW, _TENSOR or _K"),
          rows, cols};
}

Scaling scaling(std::int32_t value, const char* owner) {
  return enumerator<Scaling::fp32>(value, owner, "scaling", "MXJIT_SCALING_MX or MXJIT_SCALING_FP32");
}

Rounding rounding(std::int32_t value, const char* owner) {
  return enumerator<Rounding::pow2>(value, owner, "rounding",
                                    "MXJIT_ROUNDING_RCEIL, _FLOOR, _CEIL, _EVEN, _NONE or _POW2");
}

ScaleLayout layout(std::int32_t value, const char* owner, const char* field) {
  return enumerator<ScaleLayout::mn_major>(value, owner, field, "MXJIT_LAYOUT_PLAIN, _BLOCKED or _MN_MAJOR");
}

Tensor tensor(const mxjit_tensor& given, const char* name) {
  return {given.data,
          dtype(given.dtype, name, "dtype"),
          given.rank,
          {given.shape[0], given.shape[1], given.shape[2], given.shape[3]},
          given.pitch};
}

std::optional<OperandScale> operand_scale(const mxjit_operand_scale& given, const char* owner) {
  if (given.present == 0) return std::nullopt;
  return OperandScale{scaling(given.scaling, owner),
                      block(given.block_kind, given.block_rows, given.block_cols, owner),
                      layout(given.layout, owner, "layout")};
}

std::optional<Requant> requant(const mxjit_requant& given) {
  constexpr const char* owner = "options.requant";
  if (given.present == 0) return std::nullopt;
  return Requant{scaling(given.scaling, owner),
                 block(given.block_kind, given.block_rows, given.block_cols, owner),
                 rounding(given.rounding, owner), layout(given.layout, owner, "layout")};
}

}  // namespace

ContextOptions context_options(const mxjit_context_options* options) {
  ContextOptions made;
  if (options == nullptr) return made;
  const mxjit_context_options given = read_sized(*options, default_context, "options");
  if (given.cache_dir != nullptr) made.cache_dir = given.cache_dir;
  if (given.bundles != nullptr) {
    made.bundles.emplace();
    for (std::size_t i = 0; i < given.bundle_count; ++i) {
      require(given.bundles[i], "options.bundles");
      made.bundles->emplace_back(given.bundles[i]);
    }
  } else if (given.bundle_count != 0) {
    require(given.bundles, "options.bundles");
  }
  switch (given.compile) {
    case MXJIT_COMPILE_ENVIRONMENT:
      break;
    case MXJIT_COMPILE_ALLOW:
    case MXJIT_COMPILE_FORBID:
      made.forbid_compile = given.compile == MXJIT_COMPILE_FORBID;
      break;
    default:
      refuse_value("options", "compile", "MXJIT_COMPILE_ENVIRONMENT, _ALLOW or _FORBID", given.compile);
  }
  made.check_pointers = given.check_pointers != 0;
  made.early_start = given.early_start != 0;
  if (given.reserved != 0) refuse_value("options", "reserved", "0", given.reserved);
  if (given.trace != nullptr) made.trace = given.trace;
  return made;
}

QuantizeOptions quantize_options(const mxjit_quantize_options* options) {
  if (options == nullptr) return {};
  const mxjit_quantize_options given = read_sized(*options, default_quantize, "options");
  constexpr const char* owner = "options";
  QuantizeOptions made;
  made.format = dtype(given.format, owner, "format");
  made.scaling = scaling(given.scaling, owner);
  made.block = block(given.block_kind, given.block_rows, given.block_cols, owner);
  made.rounding = rounding(given.rounding, owner);
  made.scale_layout = layout(given.scale_layout, owner, "scale_layout");
  if ((given.axes & ~(MXJIT_AXIS_ROW | MXJIT_AXIS_COL)) != 0)
    refuse_value(owner, "axes", "MXJIT_AXIS_ROW, MXJIT_AXIS_COL or their sum", given.axes);
  made.axes = {(given.axes & MXJIT_AXIS_ROW) != 0, (given.axes & MXJIT_AXIS_COL) != 0};
  made.groups = {given.group_count, given.group_alignment};
  made.transposed_input = given.transposed_input != 0;
  if (given.reserved != 0) refuse_value(owner, "reserved", "0", given.reserved);
  made.pre = enumerator<Pre::rmsnorm>(given.pre, owner, "pre",
                                      "MXJIT_PRE_NONE, _SWIGLU, _SWIGLU_INTERLEAVED or _RMSNORM");
  made.emit_high = given.emit_high != 0;
  return made;
}

QuantizeArgs quantize_args(const mxjit_quantize_args* args) {
  require(args, "args");
  const mxjit_quantize_args given = read_sized(*args, no_quantize_args, "args");
  if (given.reserved != 0) refuse_value("args", "reserved", "0", given.reserved);
  std::optional<double> limit;
  if (given.swiglu_limit != 0) limit = given.swiglu_limit;
  return {.x = tensor(given.x, "x"),
          .q_row = tensor(given.q_row, "q_row"),
          .s_row = tensor(given.s_row, "s_row"),
          .q_col = tensor(given.q_col, "q_col"),
          .s_col = tensor(given.s_col, "s_col"),
          .offsets = tensor(given.offsets, "offsets"),
          .status = tensor(given.status, "status"),
          .amax_cap = given.amax_cap,
          .workspace = tensor(given.workspace, "workspace"),
          .y = tensor(given.y, "y"),
          .weight = tensor(given.weight, "weight"),
          .swiglu_alpha = given.swiglu_alpha,
          .swiglu_limit = limit,
          .rms_eps = given.rms_eps};
}

GemmOptions gemm_options(const mxjit_gemm_options* options) {
  if (options == nullptr) return {};
  const mxjit_gemm_options given = read_sized(*options, default_gemm, "options");
  GemmOptions made;
  made.a_scale = operand_scale(given.a_scale, "options.a_scale");
  made.b_scale = operand_scale(given.b_scale, "options.b_scale");
  made.a_mn_major = given.a_mn_major != 0;
  made.b_mn_major = given.b_mn_major != 0;
  made.accumulation = enumerator<Accumulation::exact>(given.accumulation, "options", "accumulation",
                                                      "MXJIT_ACCUMULATION_PROMOTE, _FAST or _EXACT");
  made.output = dtype(given.output, "options", "output");
  made.requant = requant(given.requant);
  made.amax = given.amax != 0;
  made.epilogue = enumerator<Epilogue::swiglu_interleaved>(
      given.epilogue, "options", "epilogue", "MXJIT_EPILOGUE_NONE, _SWIGLU or _SWIGLU_INTERLEAVED");
  made.batch_invariant = given.batch_invariant != 0;
  return made;
}

GemmArgs gemm_args(const mxjit_gemm_args* args) {
  require(args, "args");
  const mxjit_gemm_args given = read_sized(*args, no_gemm_args, "args");
  if (given.reserved != 0) refuse_value("args", "reserved", "0", given.reserved);
  GemmArgs made{.a = tensor(given.a, "a"),
                .a_scale = tensor(given.a_scale, "a_scale"),
                .b = tensor(given.b, "b"),
                .b_scale = tensor(given.b_scale, "b_scale"),
                .d = tensor(given.d, "d"),
                .c = tensor(given.c, "c"),
                .bias = tensor(given.bias, "bias"),
                .alpha = given.alpha,
                .beta = given.beta,
                .d_scale = tensor(given.d_scale, "d_scale"),
                .d_scales = tensor(given.d_scales, "d_scales"),
                .amax = tensor(given.amax, "amax"),
                .swiglu_alpha = given.swiglu_alpha};
  if (given.amax_cap != 0) made.amax_cap = given.amax_cap;
  if (given.swiglu_limit != 0) made.swiglu_limit = given.swiglu_limit;
  return made;
}

DequantizeOptions dequantize_options(const mxjit_dequantize_options* options) {
  if (options == nullptr) return {};
  const mxjit_dequantize_options given = read_sized(*options, default_dequantize, "options");
  constexpr const char* owner = "options";
  return {.scaling = scaling(given.scaling, owner),
          .block = block(given.block_kind, given.block_rows, given.block_cols, owner),
          .scale_layout = layout(given.scale_layout, owner, "scale_layout"),
          .axis_col = given.axis_col != 0,
          .groups = {given.group_count, given.group_alignment}};
}

DequantizeArgs dequantize_args(const mxjit_dequantize_args* args) {
  require(args, "args");
  const mxjit_dequantize_args given = read_sized(*args, no_dequantize_args, "args");
  return {.q = tensor(given.q, "q"),
          .s = tensor(given.s, "s"),
          .x = tensor(given.x, "x"),
          .offsets = tensor(given.offsets, "offsets"),
          .status = tensor(given.status, "status")};
}

PackScalesOptions pack_scales_options(const mxjit_pack_scales_options* options) {
  if (options == nullptr) return {};
  const mxjit_pack_scales_options given = read_sized(*options, default_pack_scales, "options");
  return {.placement =
              enumerator<Placement::per_expert>(given.placement, "options", "placement",
                                                "MXJIT_PLACEMENT_DENSE, _M_GROUPS, _K_GROUPS or _PER_EXPERT"),
          .groups = given.group_count};
}

PackScalesArgs pack_scales_args(const mxjit_pack_scales_args* args) {
  require(args, "args");
  const mxjit_pack_scales_args given = read_sized(*args, no_pack_scales_args, "args");
  return {.s = tensor(given.s, "s"),
          .s_blocked = tensor(given.s_blocked, "s_blocked"),
          .offsets = tensor(given.offsets, "offsets"),
          .status = tensor(given.status, "status")};
}

PadGroupsOptions pad_groups_options(const mxjit_pad_groups_options* options) {
  require(options, "options");
  const mxjit_pad_groups_options given = read_sized(*options, default_pad_groups, "options");
  if (given.reserved != 0) refuse_value("options", "reserved", "0", given.reserved);
  return {.groups = given.group_count, .alignment = given.alignment};
}

PadGroupsArgs pad_groups_args(const mxjit_pad_groups_args* args) {
  require(args, "args");
  const mxjit_pad_groups_args given = read_sized(*args, no_pad_groups_args, "args");
  return {.x = tensor(given.x, "x"),
          .offsets = tensor(given.offsets, "offsets"),
          .x_padded = tensor(given.x_padded, "x_padded"),
          .starts = tensor(given.starts, "starts"),
          .ends = tensor(given.ends, "ends"),
          .status = tensor(given.status, "status")};
}

UnpadGroupsArgs unpad_groups_args(const mxjit_unpad_groups_args* args) {
  require(args, "args");
  const mxjit_unpad_groups_args given = read_sized(*args, no_unpad_groups_args, "args");
  return {.x_padded = tensor(given.x_padded, "x_padded"),
          .offsets = tensor(given.offsets, "offsets"),
          .starts = tensor(given.starts, "starts"),
          .x = tensor(given.x, "x"),
          .status = tensor(given.status, "status")};
}

}  // namespace mxjit::capi
