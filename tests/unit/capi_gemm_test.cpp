// The C ABI of gemm: every field arrives where the C++ interface has it, and calls on the stub driver.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <limits>
#include <memory>
#include <string>

#include "capi/convert.hpp"
#include "unit/capi_calls.hpp"

namespace mxjit::capi {
namespace {

using driver::stub;

constexpr mxjit_gemm_options default_options = MXJIT_GEMM_OPTIONS_INIT;
constexpr mxjit_gemm_args default_args = MXJIT_GEMM_ARGS_INIT;

float largest = 0.0F;  // the stub zeroes what a launch would

// 64 x 96 of e4m3 out of K = 256, b stored as (K, N) with a factor for each contraction index.
mxjit_gemm_options of_weights() {
  mxjit_gemm_options options = default_options;
  options.a_scale = {1, MXJIT_SCALING_MX, MXJIT_BLOCK_EXTENTS, 1, 32, MXJIT_LAYOUT_BLOCKED};
  options.b_scale = {1, MXJIT_SCALING_FP32, MXJIT_BLOCK_K, 1, 1, MXJIT_LAYOUT_PLAIN};
  options.b_mn_major = 1;
  options.accumulation = MXJIT_ACCUMULATION_EXACT;
  options.output = MXJIT_E4M3;
  options.amax = 1;
  options.batch_invariant = 1;
  return options;
}

mxjit_gemm_args args_of_weights() {
  mxjit_gemm_args args = default_args;
  args.a = tensor(0x10000000, MXJIT_E5M2, {64, 256});
  args.a_scale = tensor(0x11000000, MXJIT_U8, {128 * 8});
  args.b = tensor(0x12000000, MXJIT_E4M3, {256, 96});
  args.b_scale = tensor(0x13000000, MXJIT_FP32, {256});
  args.d = tensor(0x14000000, MXJIT_E4M3, {64, 96});
  args.d_scale = tensor(0x15000000, MXJIT_FP32, {64});
  args.amax = tensor(reinterpret_cast<std::uintptr_t>(&largest), MXJIT_FP32, {1});
  return args;
}

// Requantized after SwiGLU: 64 x 48 in blocks of 1 x 32.
mxjit_gemm_options requantized() {
  mxjit_gemm_options options = of_weights();
  options.requant = {1,  MXJIT_SCALING_MX,    MXJIT_BLOCK_EXTENTS, 1,
                     32, MXJIT_ROUNDING_EVEN, MXJIT_LAYOUT_PLAIN};
  options.epilogue = MXJIT_EPILOGUE_SWIGLU_INTERLEAVED;
  return options;
}

mxjit_gemm_args requantized_args() {
  mxjit_gemm_args args = args_of_weights();
  args.d = tensor(0x14000000, MXJIT_E4M3, {64, 48});
  args.d_scale = MXJIT_NO_TENSOR;
  args.d_scales = tensor(0x15000000, MXJIT_E8M0, {64, 2});
  args.bias = tensor(0x17000000, MXJIT_BF16, {96});
  return args;
}

TEST(CapiGemm, DefaultsAreThoseOfTheCppInterface) {
  for (const mxjit_gemm_options* given :
       {&default_options, static_cast<const mxjit_gemm_options*>(nullptr)}) {
    const GemmOptions made = gemm_options(given), wanted;
    EXPECT_FALSE(made.a_scale || made.b_scale || made.requant);
    EXPECT_EQ(made.a_mn_major, wanted.a_mn_major);
    EXPECT_EQ(made.b_mn_major, wanted.b_mn_major);
    EXPECT_EQ(made.accumulation, wanted.accumulation);
    EXPECT_EQ(made.output, wanted.output);
    EXPECT_EQ(made.amax, wanted.amax);
    EXPECT_EQ(made.epilogue, wanted.epilogue);
    EXPECT_EQ(made.batch_invariant, wanted.batch_invariant);
  }
  const GemmArgs made = gemm_args(&default_args), wanted;
  EXPECT_EQ(made.alpha, wanted.alpha);
  EXPECT_EQ(made.beta, wanted.beta);
  EXPECT_EQ(made.amax_cap, wanted.amax_cap);
  EXPECT_EQ(made.swiglu_alpha, wanted.swiglu_alpha);
  EXPECT_EQ(made.swiglu_limit, wanted.swiglu_limit);
}

TEST(CapiGemm, EveryFieldArrives) {
  const mxjit_gemm_options given = requantized();
  const GemmOptions options = gemm_options(&given);
  ASSERT_TRUE(options.a_scale && options.b_scale && options.requant);
  EXPECT_EQ(options.a_scale->scaling, Scaling::mx);
  EXPECT_EQ(options.a_scale->block, (Block{Block::Kind::extents, 1, 32}));
  EXPECT_EQ(options.a_scale->layout, ScaleLayout::blocked);
  EXPECT_EQ(options.b_scale->scaling, Scaling::fp32);
  EXPECT_EQ(options.b_scale->block.kind, Block::Kind::k);
  EXPECT_FALSE(options.a_mn_major);
  EXPECT_TRUE(options.b_mn_major);
  EXPECT_EQ(options.accumulation, Accumulation::exact);
  EXPECT_EQ(options.output, DType::e4m3);
  EXPECT_EQ(options.requant->scaling, Scaling::mx);
  EXPECT_EQ(options.requant->block, (Block{Block::Kind::extents, 1, 32}));
  EXPECT_EQ(options.requant->rounding, Rounding::even);
  EXPECT_EQ(options.requant->layout, ScaleLayout::plain);
  EXPECT_TRUE(options.amax);
  EXPECT_EQ(options.epilogue, Epilogue::swiglu_interleaved);
  EXPECT_TRUE(options.batch_invariant);

  mxjit_gemm_args filled = requantized_args();
  filled.c = tensor(0x18000000, MXJIT_FP16, {1});
  filled.d_scale = tensor(0x19000000, MXJIT_FP32, {64});
  filled.alpha = 2.0F;
  filled.beta = 3.0F;
  filled.amax_cap = 4.0F;
  filled.swiglu_alpha = 5.0F;
  filled.swiglu_limit = 6.0F;
  const GemmArgs args = gemm_args(&filled);
  const auto same = [](const Tensor& made, const mxjit_tensor& from) {
    return made.data == from.data && static_cast<std::int32_t>(made.dtype) == from.dtype &&
           made.rank == from.rank && made.shape[0] == from.shape[0] && made.pitch == from.pitch;
  };
  EXPECT_TRUE(same(args.a, filled.a) && same(args.a_scale, filled.a_scale));
  EXPECT_TRUE(same(args.b, filled.b) && same(args.b_scale, filled.b_scale));
  EXPECT_TRUE(same(args.c, filled.c) && same(args.bias, filled.bias) && same(args.d, filled.d));
  EXPECT_TRUE(same(args.d_scale, filled.d_scale) && same(args.d_scales, filled.d_scales));
  EXPECT_TRUE(same(args.amax, filled.amax));
  EXPECT_EQ(args.alpha, 2.0F);
  EXPECT_EQ(args.beta, 3.0F);
  EXPECT_EQ(args.amax_cap, 4.0F);
  EXPECT_EQ(args.swiglu_alpha, 5.0F);
  EXPECT_EQ(args.swiglu_limit, 6.0F);
}

// What an older caller's struct lacks has its default; a sanitizer watches the memory after it.
TEST(CapiGemm, StructsOfBeforeOutputsOfTheirOwnAreUnderstood) {
  constexpr std::size_t options_size = offsetof(mxjit_gemm_options, requant),
                        args_size = offsetof(mxjit_gemm_args, d_scale);
  const auto options = std::make_unique<std::size_t[]>(options_size / sizeof(std::size_t));
  std::memcpy(options.get(), &default_options, options_size);
  options[0] = options_size;
  EXPECT_FALSE(gemm_options(reinterpret_cast<const mxjit_gemm_options*>(options.get())).requant);
  const auto args = std::make_unique<std::size_t[]>(args_size / sizeof(std::size_t));
  std::memcpy(args.get(), &default_args, args_size);
  args[0] = args_size;
  const GemmArgs made = gemm_args(reinterpret_cast<const mxjit_gemm_args*>(args.get()));
  EXPECT_EQ(made.amax_cap, std::numeric_limits<float>::infinity());
  EXPECT_EQ(made.swiglu_alpha, 1.0F);
}

class CapiGemmCalls : public OnStub {
 protected:
  mxjit_status call(const mxjit_gemm_options& options, const mxjit_gemm_args& args) {
    return mxjit_gemm(context_, &options, &args, stream);
  }
};

TEST_F(CapiGemmCalls, EveryOutputFormLaunches) {
  largest = 7.0F;
  EXPECT_EQ(call(of_weights(), args_of_weights()), MXJIT_SUCCESS) << mxjit_last_message();
  EXPECT_EQ(largest, 0.0F);
  const mxjit_gemm_options options = requantized();
  mxjit_gemm_args args = requantized_args();
  args.swiglu_limit = 7.0F;
  args.swiglu_alpha = 1.702F;
  EXPECT_EQ(call(options, args), MXJIT_SUCCESS) << mxjit_last_message();
  mxjit_plan* plan = nullptr;
  ASSERT_EQ(mxjit_plan_gemm(context_, &options, &args, &plan), MXJIT_SUCCESS) << mxjit_last_message();
  EXPECT_EQ(mxjit_launch_gemm(plan, &args, stream), MXJIT_SUCCESS) << mxjit_last_message();
  mxjit_plan_destroy(plan);
  EXPECT_EQ(stub().launches, 3U);
  EXPECT_EQ(compiler_->compiles, 2);
}

TEST_F(CapiGemmCalls, FaultsAreNamed) {
  const mxjit_gemm_args args = requantized_args();
  for (const std::int32_t bad : {-1, 99}) {
    mxjit_gemm_options options = requantized();
    options.epilogue = bad;
    expect_refused(call(options, args), "options.epilogue");
    options = requantized();
    options.requant.scaling = bad;
    expect_refused(call(options, args), "options.requant.scaling");
    options = requantized();
    options.requant.block_kind = bad;
    expect_refused(call(options, args), "options.requant.block_kind");
    options = requantized();
    options.requant.rounding = bad;
    expect_refused(call(options, args), "options.requant.rounding");
    options = requantized();
    options.requant.layout = bad;
    expect_refused(call(options, args), "options.requant.layout");
  }
  mxjit_gemm_options options = requantized();
  options.output = MXJIT_BF16;
  expect_refused(call(options, args), "options.requant");
  mxjit_gemm_args wrong = args;
  wrong.reserved = 1;
  expect_refused(call(requantized(), wrong), "args.reserved");
  wrong = args;
  wrong.amax_cap = -1.0F;
  expect_refused(call(requantized(), wrong), "amax_cap");
  wrong = args;
  wrong.swiglu_limit = -1.0F;
  expect_refused(call(requantized(), wrong), "swiglu_limit");
  wrong = args;
  wrong.amax = MXJIT_NO_TENSOR;
  expect_refused(call(requantized(), wrong), "amax");
  wrong = args;
  wrong.d_scales.shape[1] = 3;
  expect_refused(call(requantized(), wrong), "d_scales");
  wrong = args_of_weights();
  wrong.d_scale.shape[0] = 63;
  expect_refused(call(of_weights(), wrong), "d_scale");
  wrong = args_of_weights();
  wrong.b_scale.shape[0] = 96;
  expect_refused(call(of_weights(), wrong), "b_scale");
  EXPECT_EQ(stub().launches, 0U);
}

}  // namespace
}  // namespace mxjit::capi
