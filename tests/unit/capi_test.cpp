// The C ABI on the stub driver: every function, the errors of every argument, structs of other sizes.
#include "mxjit/mxjit.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <latch>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "base/log.hpp"
#include "cache/support.hpp"
#include "capi/guard.hpp"
#include "unit/capi_calls.hpp"
#include "unit/on_stub.hpp"

namespace mxjit::capi {
namespace {

using driver::stub;

mxjit_quantize_args row_args(std::int64_t m, std::int64_t n) {
  mxjit_quantize_args args = MXJIT_QUANTIZE_ARGS_INIT;
  args.x = tensor(0x10000000, MXJIT_BF16, {m, n});
  args.q_row = tensor(0x20000000, MXJIT_E4M3, {m, n});
  args.s_row = tensor(0x30000000, MXJIT_E8M0, {m, (n + 31) / 32});
  return args;
}

mxjit_gemm_options rowwise() {
  mxjit_gemm_options options = MXJIT_GEMM_OPTIONS_INIT;
  options.a_scale = options.b_scale = {1, MXJIT_SCALING_FP32, MXJIT_BLOCK_ROW, 1, 1, MXJIT_LAYOUT_PLAIN};
  return options;
}

mxjit_gemm_args gemm_args(std::int64_t m, std::int64_t n, std::int64_t k) {
  mxjit_gemm_args args = MXJIT_GEMM_ARGS_INIT;
  args.a = tensor(0x10000000, MXJIT_E4M3, {m, k});
  args.a_scale = tensor(0x20000000, MXJIT_FP32, {m});
  args.b = tensor(0x30000000, MXJIT_E4M3, {n, k});
  args.b_scale = tensor(0x40000000, MXJIT_FP32, {n});
  args.d = tensor(0x50000000, MXJIT_BF16, {m, n});
  return args;
}

class Capi : public OnStub {
 protected:
  void TearDown() override { set_log_sink({}); }

  mxjit_statistics statistics() {
    mxjit_statistics told = MXJIT_STATISTICS_INIT;
    EXPECT_EQ(mxjit_context_statistics(context_, &told), MXJIT_SUCCESS);
    return told;
  }
};

TEST_F(Capi, QuantizesCompilesOnceAndCounts) {
  const mxjit_quantize_args args = row_args(100, 200);
  EXPECT_EQ(mxjit_quantize(context_, nullptr, &args, stream), MXJIT_SUCCESS) << mxjit_last_message();
  const mxjit_quantize_options options = MXJIT_QUANTIZE_OPTIONS_INIT;
  EXPECT_EQ(mxjit_quantize(context_, &options, &args, stream), MXJIT_SUCCESS);
  EXPECT_EQ(stub().launches, 2U);
  const mxjit_statistics told = statistics();
  EXPECT_EQ(told.compiles, 1U);
  EXPECT_EQ(told.loads, 1U);
  EXPECT_EQ(told.memory_hits + told.root_hits + told.layer_hits, 0U);
  EXPECT_GT(told.compile_ns, 0U);
  EXPECT_GT(told.load_ns, 0U);
}

TEST_F(Capi, FloatScalesTakeAWorkspaceAndACap) {
  mxjit_quantize_options options = MXJIT_QUANTIZE_OPTIONS_INIT;
  options.scaling = MXJIT_SCALING_FP32;
  options.rounding = MXJIT_ROUNDING_NONE;
  options.block_kind = MXJIT_BLOCK_TENSOR;
  mxjit_quantize_args args = row_args(100, 200);
  args.s_row = tensor(0x30000000, MXJIT_FP32, {1});
  expect_refused(mxjit_quantize(context_, &options, &args, stream), "workspace");
  std::size_t bytes = 0;
  ASSERT_EQ(mxjit_quantize_workspace_size(&options, &args, &bytes), MXJIT_SUCCESS) << mxjit_last_message();
  ASSERT_EQ(bytes, 512U);
  alignas(256) std::array<unsigned char, 512> memory;
  args.workspace =
      tensor(reinterpret_cast<std::uintptr_t>(memory.data()), MXJIT_U8, {static_cast<std::int64_t>(bytes)});
  args.amax_cap = 1200.0F;
  EXPECT_EQ(mxjit_quantize(context_, &options, &args, stream), MXJIT_SUCCESS) << mxjit_last_message();
  args.amax_cap = -1.0F;
  expect_refused(mxjit_quantize(context_, &options, &args, stream), "amax_cap");
  args.amax_cap = 0;
  args.reserved = 1;
  expect_refused(mxjit_quantize(context_, &options, &args, stream), "args.reserved");
  EXPECT_EQ(mxjit_quantize_workspace_size(&options, &args, nullptr), MXJIT_INVALID_ARGUMENT);
}

TEST_F(Capi, PlansLaunchAndOutliveTheirContext) {
  const mxjit_quantize_args args = row_args(100, 200);
  const mxjit_gemm_options gemm_options = rowwise();
  const mxjit_gemm_args product = gemm_args(128, 512, 256);
  auto* context = new mxjit_context{std::move(handle_.context)};
  mxjit_plan* quantize = nullptr;
  mxjit_plan* gemm = nullptr;
  ASSERT_EQ(mxjit_plan_quantize(context, nullptr, &args, &quantize), MXJIT_SUCCESS) << mxjit_last_message();
  ASSERT_EQ(mxjit_plan_gemm(context, &gemm_options, &product, &gemm), MXJIT_SUCCESS) << mxjit_last_message();
  EXPECT_EQ(stub().launches, 0U);
  EXPECT_EQ(mxjit_gemm(context, &gemm_options, &product, stream), MXJIT_SUCCESS);
  EXPECT_EQ(compiler_->compiles, 2);
  mxjit_context_destroy(context);
  EXPECT_EQ(mxjit_launch_quantize(quantize, &args, stream), MXJIT_SUCCESS);
  EXPECT_EQ(mxjit_launch_gemm(gemm, &product, stream), MXJIT_SUCCESS);
  EXPECT_EQ(stub().launches, 3U);

  expect_refused(mxjit_launch_quantize(gemm, &args, stream), "plan");
  expect_refused(mxjit_launch_gemm(quantize, &product, stream), "plan");
  const mxjit_quantize_args other = row_args(100, 201);
  expect_refused(mxjit_launch_quantize(quantize, &other, stream), "x");
  stub().reset_context(0);
  expect_failed(mxjit_launch_quantize(quantize, &args, stream), MXJIT_CONTEXT_LOST, "");
  EXPECT_EQ(stub().launches, 3U);
  mxjit_plan_destroy(quantize);
  mxjit_plan_destroy(gemm);
  mxjit_plan_destroy(nullptr);
  mxjit_context_destroy(nullptr);
}

TEST_F(Capi, EveryFieldReachesTheCall) {
  mxjit_quantize_options options = MXJIT_QUANTIZE_OPTIONS_INIT;
  options.format = MXJIT_E5M2;
  options.block_rows = options.block_cols = 32;
  options.rounding = MXJIT_ROUNDING_FLOOR;
  options.scale_layout = MXJIT_LAYOUT_BLOCKED;
  options.axes = MXJIT_AXIS_ROW | MXJIT_AXIS_COL;
  mxjit_quantize_args args = MXJIT_QUANTIZE_ARGS_INIT;
  args.x = tensor(0x10000000, MXJIT_FP16, {2, 128, 160});
  args.x.pitch = 192;
  args.q_row = tensor(0x20000000, MXJIT_E5M2, {2, 128, 160});
  args.s_row = tensor(0x30000000, MXJIT_U8, {2 * 128 * 8});
  args.q_col = tensor(0x40000000, MXJIT_E5M2, {2, 160, 128});
  args.s_col = tensor(0x50000000, MXJIT_E8M0, {2 * 256 * 4});
  EXPECT_EQ(mxjit_quantize(context_, &options, &args, stream), MXJIT_SUCCESS) << mxjit_last_message();
  args.s_col.shape[0] += 1;
  expect_refused(mxjit_quantize(context_, &options, &args, stream), "s_col");

  options = MXJIT_QUANTIZE_OPTIONS_INIT;
  options.group_count = 3;
  options.group_alignment = 32;
  args = row_args(256, 64);
  args.offsets = tensor(0x60000000, MXJIT_I32, {3});
  args.status = tensor(0x70000000, MXJIT_I32, {4});
  EXPECT_EQ(mxjit_quantize(context_, &options, &args, stream), MXJIT_SUCCESS) << mxjit_last_message();
  args.status.shape[0] = 5;
  expect_refused(mxjit_quantize(context_, &options, &args, stream), "status");

  options = MXJIT_QUANTIZE_OPTIONS_INIT;
  options.transposed_input = 1;
  args = row_args(100, 200);
  expect_refused(mxjit_quantize(context_, &options, &args, stream), "q_row");
  args.x = tensor(0x10000000, MXJIT_BF16, {200, 100});
  EXPECT_EQ(mxjit_quantize(context_, &options, &args, stream), MXJIT_SUCCESS) << mxjit_last_message();

  options = MXJIT_QUANTIZE_OPTIONS_INIT;
  options.pre = MXJIT_PRE_SWIGLU_INTERLEAVED;
  options.emit_high = 1;
  args = row_args(100, 200);
  args.swiglu_limit = 7.0;
  expect_refused(mxjit_quantize(context_, &options, &args, stream), "q_row");
  args.x = tensor(0x10000000, MXJIT_BF16, {100, 400});
  expect_refused(mxjit_quantize(context_, &options, &args, stream), "y");
  args.y = tensor(0x60000000, MXJIT_BF16, {100, 200});
  EXPECT_EQ(mxjit_quantize(context_, &options, &args, stream), MXJIT_SUCCESS) << mxjit_last_message();
  args.swiglu_alpha = std::numeric_limits<double>::infinity();
  expect_refused(mxjit_quantize(context_, &options, &args, stream), "swiglu_alpha");

  options = MXJIT_QUANTIZE_OPTIONS_INIT;
  options.pre = MXJIT_PRE_RMSNORM;
  args = row_args(100, 200);
  args.weight = tensor(0x60000000, MXJIT_BF16, {200});
  size_t workspace = 0;
  EXPECT_EQ(mxjit_quantize_workspace_size(&options, &args, &workspace), MXJIT_SUCCESS);
  EXPECT_EQ(workspace, 0U);
  EXPECT_EQ(mxjit_quantize(context_, &options, &args, stream), MXJIT_SUCCESS) << mxjit_last_message();
  options.block_rows = options.block_cols = 32;
  args.s_row = tensor(0x30000000, MXJIT_E8M0, {4, 7});
  EXPECT_EQ(mxjit_quantize_workspace_size(&options, &args, &workspace), MXJIT_SUCCESS);
  EXPECT_EQ(workspace, 1280U);
  alignas(256) std::array<unsigned char, 1280> memory;  // the launch zeroes it
  args.workspace = tensor(reinterpret_cast<std::uintptr_t>(memory.data()), MXJIT_U8,
                          {static_cast<std::int64_t>(workspace)});
  EXPECT_EQ(mxjit_quantize(context_, &options, &args, stream), MXJIT_SUCCESS) << mxjit_last_message();

  mxjit_gemm_options gemm = rowwise();
  gemm.a_mn_major = gemm.b_mn_major = 1;
  gemm.accumulation = MXJIT_ACCUMULATION_EXACT;
  gemm.output = MXJIT_FP32;
  mxjit_gemm_args product = gemm_args(64, 48, 96);
  product.a = tensor(0x10000000, MXJIT_E4M3, {96, 64});
  product.b = tensor(0x30000000, MXJIT_E5M2, {96, 48});
  product.d.dtype = MXJIT_FP32;
  product.c = tensor(0x60000000, MXJIT_FP32, {64, 48});
  product.bias = tensor(0x70000000, MXJIT_BF16, {48});
  product.beta = 1;
  EXPECT_EQ(mxjit_gemm(context_, &gemm, &product, stream), MXJIT_SUCCESS) << mxjit_last_message();
  product.c = MXJIT_NO_TENSOR;
  expect_refused(mxjit_gemm(context_, &gemm, &product, stream), "c");
}

TEST_F(Capi, LoadsWhatATraceNeeds) {
  const char* const trace =
      R"({"schema":1,"op":"quantize","scaling":"mx","block":32,"input":{"dtype":"bf16","shape":[100,200]}})"
      "\n";
  EXPECT_EQ(mxjit_load(context_, trace), MXJIT_SUCCESS) << mxjit_last_message();
  EXPECT_EQ(statistics().loads, 1U);
  const mxjit_quantize_args args = row_args(100, 200);
  EXPECT_EQ(mxjit_quantize(context_, nullptr, &args, stream), MXJIT_SUCCESS);
  EXPECT_EQ(statistics().loads, 1U);
  EXPECT_EQ(compiler_->compiles, 1);
  EXPECT_EQ(mxjit_load(context_, "{"), MXJIT_INVALID_ARGUMENT);
  expect_refused(mxjit_load(nullptr, trace), "context");
  expect_refused(mxjit_load(context_, nullptr), "trace");
}

TEST_F(Capi, NullIsRefusedByName) {
  const mxjit_quantize_args args = row_args(100, 200);
  const mxjit_gemm_args product = gemm_args(128, 512, 256);
  mxjit_plan* plan = reinterpret_cast<mxjit_plan*>(8);
  expect_refused(mxjit_context_create(nullptr, nullptr), "context");
  expect_refused(mxjit_quantize(nullptr, nullptr, &args, stream), "context");
  expect_refused(mxjit_quantize(context_, nullptr, nullptr, stream), "args");
  expect_refused(mxjit_plan_quantize(context_, nullptr, &args, nullptr), "plan");
  expect_refused(mxjit_plan_quantize(nullptr, nullptr, &args, &plan), "context");
  EXPECT_EQ(plan, nullptr);
  expect_refused(mxjit_launch_quantize(nullptr, &args, stream), "plan");
  expect_refused(mxjit_gemm(nullptr, nullptr, &product, stream), "context");
  expect_refused(mxjit_gemm(context_, nullptr, nullptr, stream), "args");
  plan = reinterpret_cast<mxjit_plan*>(8);
  expect_refused(mxjit_plan_gemm(context_, nullptr, nullptr, &plan), "args");
  EXPECT_EQ(plan, nullptr);
  expect_refused(mxjit_launch_gemm(nullptr, &product, stream), "plan");
  mxjit_statistics told = MXJIT_STATISTICS_INIT;
  expect_refused(mxjit_context_statistics(nullptr, &told), "context");
  expect_refused(mxjit_context_statistics(context_, nullptr), "statistics");
  expect_refused(mxjit_context_layer(nullptr, 0, nullptr, nullptr), "context");
  expect_refused(mxjit_context_layer(context_, 0, nullptr, nullptr), "index");
  EXPECT_EQ(stub().launches, 0U);
  EXPECT_EQ(compiler_->compiles, 0);
}

TEST_F(Capi, ValuesOutsideTheirSetAreRefusedByName) {
  const mxjit_quantize_args args = row_args(100, 200);
  const auto quantize = [&](auto field, std::int32_t value) {
    mxjit_quantize_options options = MXJIT_QUANTIZE_OPTIONS_INIT;
    options.*field = value;
    return mxjit_quantize(context_, &options, &args, stream);
  };
  for (const std::int32_t bad : {-1, 99, 256, INT32_MIN, INT32_MAX}) {
    expect_refused(quantize(&mxjit_quantize_options::format, bad), "options.format");
    expect_refused(quantize(&mxjit_quantize_options::scaling, bad), "options.scaling");
    expect_refused(quantize(&mxjit_quantize_options::block_kind, bad), "options.block_kind");
    expect_refused(quantize(&mxjit_quantize_options::rounding, bad), "options.rounding");
    expect_refused(quantize(&mxjit_quantize_options::scale_layout, bad), "options.scale_layout");
    expect_refused(quantize(&mxjit_quantize_options::axes, bad), "options.axes");
    expect_refused(quantize(&mxjit_quantize_options::pre, bad), "options.pre");
    expect_refused(quantize(&mxjit_quantize_options::reserved, bad), "options.reserved");
    mxjit_quantize_args other = args;
    other.s_row.dtype = bad;
    expect_refused(mxjit_quantize(context_, nullptr, &other, stream), "s_row.dtype");
    other = args;
    other.q_row.rank = bad;
    expect_refused(mxjit_quantize(context_, nullptr, &other, stream), "q_row");

    const mxjit_gemm_args product = gemm_args(128, 512, 256);
    mxjit_gemm_options gemm = rowwise();
    gemm.accumulation = bad;
    expect_refused(mxjit_gemm(context_, &gemm, &product, stream), "options.accumulation");
    gemm = rowwise();
    gemm.output = bad;
    expect_refused(mxjit_gemm(context_, &gemm, &product, stream), "options.output");
    gemm = rowwise();
    gemm.b_scale.layout = bad;
    expect_refused(mxjit_gemm(context_, &gemm, &product, stream), "options.b_scale.layout");
    gemm = rowwise();
    gemm.a_scale.scaling = bad;
    expect_refused(mxjit_gemm(context_, &gemm, &product, stream), "options.a_scale.scaling");
    mxjit_context_options options = MXJIT_CONTEXT_OPTIONS_INIT;
    mxjit_context* context = nullptr;
    options.compile = bad;
    expect_refused(mxjit_context_create(&options, &context), "options.compile");
  }
  const char* const bundles[] = {"a", nullptr};
  mxjit_context_options options = MXJIT_CONTEXT_OPTIONS_INIT;
  mxjit_context* context = nullptr;
  options.bundle_count = 2;
  expect_refused(mxjit_context_create(&options, &context), "options.bundles");
  options.reserved = 1;
  options.bundle_count = 0;
  expect_refused(mxjit_context_create(&options, &context), "options.reserved");
  options.reserved = 0;
  options.bundle_count = 2;
  options.bundles = bundles;
  expect_refused(mxjit_context_create(&options, &context), "options.bundles");
  expect_refused(mxjit_set_log_callback(nullptr, nullptr, 4), "level");
  expect_refused(mxjit_set_log_callback(nullptr, nullptr, -2), "level");
  EXPECT_EQ(stub().launches, 0U);
}

// What the C++ interface refuses, the C one refuses by the same name, and it says what was expected.
TEST_F(Capi, FaultsOfTensorsAreNamed) {
  mxjit_quantize_args args = row_args(100, 200);
  args.q_row.data = args.x.data;
  expect_refused(mxjit_quantize(context_, nullptr, &args, stream), "q_row");
  args = row_args(100, 200);
  args.x.data = nullptr;
  expect_refused(mxjit_quantize(context_, nullptr, &args, stream), "x");
  EXPECT_NE(std::string(mxjit_last_message()).find("null"), std::string::npos) << mxjit_last_message();
  args = row_args(100, 200);
  args.x.shape[0] = -1;
  expect_refused(mxjit_quantize(context_, nullptr, &args, stream), "x");
}

TEST_F(Capi, StructsOfOtherSizesAreUnderstood) {
  const mxjit_quantize_args args = row_args(100, 200);
  struct Newer {
    mxjit_quantize_options known = MXJIT_QUANTIZE_OPTIONS_INIT;
    std::int64_t unknown[3] = {0, 0, 0};
  } newer;
  newer.known.struct_size = sizeof newer;
  EXPECT_EQ(mxjit_quantize(context_, &newer.known, &args, stream), MXJIT_SUCCESS) << mxjit_last_message();
  newer.unknown[2] = 1;
  expect_refused(mxjit_quantize(context_, &newer.known, &args, stream), "options");

  // An older caller's memory ends where its struct does; a sanitizer watches.
  const std::size_t older_size = offsetof(mxjit_quantize_options, scale_layout) & ~std::size_t{7};
  const auto older = std::make_unique<std::size_t[]>(older_size / sizeof(std::size_t));
  const mxjit_quantize_options defaults = MXJIT_QUANTIZE_OPTIONS_INIT;
  std::memcpy(older.get(), &defaults, older_size);
  older[0] = older_size;
  const auto* options = reinterpret_cast<const mxjit_quantize_options*>(older.get());
  EXPECT_EQ(mxjit_quantize(context_, options, &args, stream), MXJIT_SUCCESS) << mxjit_last_message();
  EXPECT_EQ(compiler_->compiles, 1);  // all of them the defaults

  for (const std::size_t bad : {std::size_t{0}, std::size_t{4}, sizeof(mxjit_quantize_options) + 1,
                                std::size_t{1} << 40, ~std::size_t{0}}) {
    mxjit_quantize_options wrong = MXJIT_QUANTIZE_OPTIONS_INIT;
    wrong.struct_size = bad;
    expect_refused(mxjit_quantize(context_, &wrong, &args, stream), "options.struct_size");
  }
  // Arguments without the tensors that this call does not have.
  mxjit_quantize_args short_args = args;
  short_args.struct_size = offsetof(mxjit_quantize_args, q_col);
  short_args.q_col.rank = 77;
  EXPECT_EQ(mxjit_quantize(context_, nullptr, &short_args, stream), MXJIT_SUCCESS) << mxjit_last_message();
}

TEST_F(Capi, StatisticsFillWhatTheCallerHas) {
  struct Newer {
    mxjit_statistics known = MXJIT_STATISTICS_INIT;
    std::uint64_t unknown[2] = {7, 7};
  } newer;
  newer.known.struct_size = sizeof newer;
  newer.known.compiles = 7;
  ASSERT_EQ(mxjit_context_statistics(context_, &newer.known), MXJIT_SUCCESS);
  EXPECT_EQ(newer.known.compiles, 0U);
  EXPECT_EQ(newer.unknown[1], 0U);
  EXPECT_EQ(newer.known.struct_size, sizeof newer);
  mxjit_statistics older = MXJIT_STATISTICS_INIT;
  older.struct_size = offsetof(mxjit_statistics, compiles);
  older.memory_hits = older.compiles = 7;
  ASSERT_EQ(mxjit_context_statistics(context_, &older), MXJIT_SUCCESS);
  EXPECT_EQ(older.memory_hits, 0U);
  EXPECT_EQ(older.compiles, 7U);
}

TEST_F(Capi, LayersAreListedWithTheirHits) {
  const test::Folder folder;
  cache::Options options = test::rooted(folder.root());
  test::stub_context(options, compiler_)->quantize({}, test::row_args(100, 200), stream);
  cache::Options reader;
  reader.layers = {folder.path() / "missing", folder.root()};
  handle_.context = test::stub_context(reader, compiler_);
  const mxjit_quantize_args args = row_args(100, 200);
  ASSERT_EQ(mxjit_quantize(context_, nullptr, &args, stream), MXJIT_SUCCESS) << mxjit_last_message();
  EXPECT_EQ(statistics().layers, 2U);
  EXPECT_EQ(statistics().layer_hits, 1U);
  const char* path = nullptr;
  std::uint64_t hits = 7;
  ASSERT_EQ(mxjit_context_layer(context_, 0, nullptr, &hits), MXJIT_SUCCESS);
  EXPECT_EQ(hits, 0U);
  ASSERT_EQ(mxjit_context_layer(context_, 1, &path, &hits), MXJIT_SUCCESS);
  EXPECT_EQ(path, folder.root());
  EXPECT_EQ(hits, 1U);
  expect_refused(mxjit_context_layer(context_, 2, &path, &hits), "index");
}

TEST_F(Capi, EveryErrorHasItsStatus) {
  const mxjit_quantize_args args = row_args(100, 200);
  const auto compile_error = [&](ErrorCode code) {
    compiler_->before = [code](const auto&) { throw Error(code, "asked for", "argument"); };
    return mxjit_quantize(context_, nullptr, &args, stream);
  };
  expect_failed(compile_error(ErrorCode::compile_failed), MXJIT_COMPILE_FAILED, "argument");
  EXPECT_STREQ(mxjit_last_message(), "asked for");
  expect_failed(compile_error(ErrorCode::unavailable), MXJIT_UNAVAILABLE, "argument");
  expect_failed(compile_error(ErrorCode::unsupported), MXJIT_UNSUPPORTED, "argument");
  expect_failed(compile_error(ErrorCode::io), MXJIT_IO, "argument");
  expect_failed(compile_error(ErrorCode::internal), MXJIT_INTERNAL, "argument");
  compiler_->before = nullptr;
  stub().capture = CU_STREAM_CAPTURE_STATUS_ACTIVE;
  expect_failed(mxjit_quantize(context_, nullptr, &args, stream), MXJIT_NOT_LOADED, "stream");
  stub().capture = CU_STREAM_CAPTURE_STATUS_NONE;
  stub().launch_result = CUDA_ERROR_LAUNCH_FAILED;
  expect_failed(mxjit_quantize(context_, nullptr, &args, stream), MXJIT_DRIVER, "");
  stub().launch_result = CUDA_SUCCESS;
  cache::Options forbid;
  forbid.forbid_compile = true;
  handle_.context = test::stub_context(forbid, compiler_);
  expect_failed(mxjit_quantize(context_, nullptr, &args, stream), MXJIT_COMPILE_FORBIDDEN, "");
  EXPECT_EQ(guarded([] { throw std::bad_alloc(); }), MXJIT_OUT_OF_MEMORY);
  EXPECT_EQ(guarded([] { throw std::runtime_error("plain"); }), MXJIT_INTERNAL);
  EXPECT_STREQ(mxjit_last_message(), "plain");
  EXPECT_EQ(guarded([] { throw 7; }), MXJIT_INTERNAL);  // NOLINT
  EXPECT_STRNE(mxjit_last_message(), "plain");
  for (mxjit_status status = MXJIT_SUCCESS; status <= MXJIT_OUT_OF_MEMORY; ++status)
    EXPECT_STRNE(mxjit_status_name(status), "unknown") << status;
  EXPECT_STREQ(mxjit_status_name(-1), "unknown");
  EXPECT_STREQ(mxjit_status_name(MXJIT_OUT_OF_MEMORY + 1), "unknown");
}

TEST_F(Capi, TheLastErrorIsTheThreadsOwnAndStays) {
  expect_refused(mxjit_quantize(nullptr, nullptr, nullptr, stream), "context");
  std::jthread([] {
    EXPECT_EQ(mxjit_last_status(), MXJIT_SUCCESS);
    EXPECT_STREQ(mxjit_last_message(), "");
    expect_refused(mxjit_launch_gemm(nullptr, nullptr, stream), "plan");
  }).join();
  const mxjit_quantize_args args = row_args(100, 200);
  EXPECT_EQ(mxjit_quantize(context_, nullptr, &args, stream), MXJIT_SUCCESS);
  EXPECT_STREQ(mxjit_last_argument(), "context");
}

TEST_F(Capi, LongMessagesAreCutBetweenCharacters) {
  for (int shift = 0; shift < 4; ++shift) {
    std::string text(static_cast<std::size_t>(shift), 'x');
    while (text.size() < 20000) text += "\xF0\x9F\x98\x80";  // four bytes
    fail(MXJIT_IO, text.c_str(), text.c_str());
    const std::string message = mxjit_last_message();
    EXPECT_LT(message.size(), 8192U);
    EXPECT_GT(message.size(), 8180U);
    EXPECT_TRUE(message.ends_with("..."));
    EXPECT_EQ((message.size() - 3 - static_cast<std::size_t>(shift)) % 4, 0U);
    EXPECT_LT(std::strlen(mxjit_last_argument()), 256U);
  }
}

struct Heard {
  std::vector<std::string> lines;
  static void hear(void* user, std::int32_t level, const char* line) {
    static_cast<Heard*>(user)->lines.push_back(std::to_string(level) + " " + line);
  }
};

TEST_F(Capi, TheLogGoesToTheCallback) {
  Heard heard;
  const mxjit_quantize_args args = row_args(100, 200);
  ASSERT_EQ(mxjit_set_log_callback(Heard::hear, &heard, MXJIT_LOG_INFO), MXJIT_SUCCESS);
  ASSERT_EQ(mxjit_quantize(context_, nullptr, &args, stream), MXJIT_SUCCESS);
  ASSERT_EQ(heard.lines.size(), 1U);
  EXPECT_TRUE(heard.lines[0].starts_with("2 cache: compiled ")) << heard.lines[0];
  ASSERT_EQ(mxjit_set_log_callback(Heard::hear, &heard, MXJIT_LOG_ENVIRONMENT), MXJIT_SUCCESS);
  log(LogLevel::info, "dropped");
  log(LogLevel::warn, "heard");
  ASSERT_EQ(mxjit_set_log_callback(nullptr, nullptr, MXJIT_LOG_DEBUG), MXJIT_SUCCESS);
  log(LogLevel::error, "dropped");
  EXPECT_EQ(heard.lines.size(), 2U);
  EXPECT_EQ(heard.lines[1], "1 heard");
}

TEST_F(Capi, WarmLaunchesOfManyThreads) {
  const mxjit_quantize_args args = row_args(100, 200);
  mxjit_plan* plan = nullptr;
  ASSERT_EQ(mxjit_plan_quantize(context_, nullptr, &args, &plan), MXJIT_SUCCESS);
  std::vector<std::jthread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 100; ++i) {
        EXPECT_EQ(mxjit_launch_quantize(plan, &args, stream), MXJIT_SUCCESS);
        EXPECT_EQ(mxjit_quantize(context_, nullptr, &args, stream), MXJIT_SUCCESS);
      }
    });
  threads.clear();
  EXPECT_EQ(stub().launches, 1600U);
  mxjit_plan_destroy(plan);
}

TEST_F(Capi, WithoutADriverCreatingAContextSaysSo) {
  if (driver::why_no_gpu().empty()) GTEST_SKIP() << "there is a GPU";
  auto* context = reinterpret_cast<mxjit_context*>(8);
  expect_failed(mxjit_context_create(nullptr, &context), MXJIT_UNAVAILABLE, "");
  EXPECT_EQ(context, nullptr);
  EXPECT_NE(std::string(mxjit_last_message()).find("CUDA driver"), std::string::npos) << mxjit_last_message();
}

// The binary interface: these numbers change only where a struct grows at its end.
TEST(CapiLayout, StructsAreWhereTheyWere) {
  static_assert(sizeof(void*) == 8, "the numbers are of 64-bit systems");
  EXPECT_EQ(sizeof(mxjit_tensor), 56U);
  EXPECT_EQ(offsetof(mxjit_tensor, dtype), 8U);
  EXPECT_EQ(offsetof(mxjit_tensor, rank), 12U);
  EXPECT_EQ(offsetof(mxjit_tensor, shape), 16U);
  EXPECT_EQ(offsetof(mxjit_tensor, pitch), 48U);
  EXPECT_EQ(sizeof(mxjit_context_options), 56U);
  EXPECT_EQ(offsetof(mxjit_context_options, early_start), 48U);
  EXPECT_EQ(offsetof(mxjit_context_options, trace), 40U);
  EXPECT_EQ(offsetof(mxjit_context_options, compile), 32U);
  EXPECT_EQ(offsetof(mxjit_context_options, check_pointers), 36U);
  EXPECT_EQ(sizeof(mxjit_quantize_options), 64U);
  EXPECT_EQ(offsetof(mxjit_quantize_options, emit_high), 60U);
  EXPECT_EQ(offsetof(mxjit_quantize_options, format), 8U);
  EXPECT_EQ(offsetof(mxjit_quantize_options, axes), 36U);
  EXPECT_EQ(offsetof(mxjit_quantize_options, reserved), 52U);
  EXPECT_EQ(sizeof(mxjit_quantize_args), 600U);
  EXPECT_EQ(offsetof(mxjit_quantize_args, y), 464U);
  EXPECT_EQ(offsetof(mxjit_quantize_args, rms_eps), 592U);
  EXPECT_EQ(offsetof(mxjit_quantize_args, status), 344U);
  EXPECT_EQ(offsetof(mxjit_quantize_args, workspace), 400U);
  EXPECT_EQ(offsetof(mxjit_quantize_args, amax_cap), 456U);
  EXPECT_EQ(sizeof(mxjit_operand_scale), 24U);
  EXPECT_EQ(sizeof(mxjit_requant), 28U);
  EXPECT_EQ(sizeof(mxjit_gemm_options), 112U);
  EXPECT_EQ(offsetof(mxjit_gemm_options, requant), 72U);
  EXPECT_EQ(offsetof(mxjit_gemm_options, batch_invariant), 108U);
  EXPECT_EQ(offsetof(mxjit_gemm_options, output), 68U);
  EXPECT_EQ(sizeof(mxjit_gemm_args), 592U);
  EXPECT_EQ(offsetof(mxjit_gemm_args, d_scale), 408U);
  EXPECT_EQ(offsetof(mxjit_gemm_args, swiglu_limit), 584U);
  EXPECT_EQ(offsetof(mxjit_gemm_args, alpha), 400U);
  EXPECT_EQ(sizeof(mxjit_statistics), 152U);
  EXPECT_EQ(offsetof(mxjit_statistics, load_ns), 144U);
}

}  // namespace
}  // namespace mxjit::capi
