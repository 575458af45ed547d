// What a GEMM call may look like: every rule broken one at a time, from a call that is right.
#include "dispatch/gemm_check.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "configure/profile.hpp"
#include "dispatch/gemm_key.hpp"
#include "dispatch/run.hpp"
#include "mxjit/error.hpp"
#include "unit/on_stub.hpp"
#include "unit/refusal.hpp"

namespace mxjit::dispatch {
namespace {

using test::tensor;

constexpr Block row_block{.kind = Block::Kind::row};

// 100 x 200 x 300, a by tokens, b by channels, bf16 out; every buffer 1 MiB from the next.
GemmCall right_gemm() {
  GemmCall call;
  call.options.a_scale = call.options.b_scale = OperandScale{.block = row_block};
  call.args.a = tensor(0x100000, DType::e4m3, {100, 300}, 304);
  call.args.a_scale = tensor(0x200000, DType::fp32, {100});
  call.args.b = tensor(0x300000, DType::e5m2, {200, 300}, 304);
  call.args.b_scale = tensor(0x400000, DType::fp32, {200});
  call.args.d = tensor(0x500000, DType::bf16, {100, 200});
  return call;
}

GemmSizes check(const GemmCall& call) {
  check_options(call.options);
  return check_gemm(call.options, call.args);
}

void expect_error(const std::string& argument, const std::function<void(GemmCall&)>& change) {
  GemmCall call = right_gemm();
  change(call);
  test::refusal(argument, [&] { check(call); });
}

TEST(GemmCheck, AcceptsRightCalls) {
  const GemmSizes sizes = check(right_gemm());
  EXPECT_EQ(sizes.batch, 1);
  EXPECT_EQ(sizes.m, 100);
  EXPECT_EQ(sizes.n, 200);
  EXPECT_EQ(sizes.k, 300);

  GemmCall turned = right_gemm();
  turned.options.a_mn_major = true;
  turned.args.a = tensor(0x100000, DType::e4m3, {300, 100});
  EXPECT_EQ(check(turned).k, 300);

  GemmCall blocks = right_gemm();
  blocks.options.a_scale = OperandScale{.block = {.rows = 1, .cols = 128}, .layout = ScaleLayout::mn_major};
  blocks.options.b_scale = OperandScale{.block = {.rows = 128, .cols = 128}};
  blocks.args.a_scale = tensor(0x200000, DType::fp32, {3, 100});
  blocks.args.b_scale = tensor(0x400000, DType::fp32, {2, 3});
  EXPECT_NO_THROW(check(blocks));

  GemmCall of_k = right_gemm();
  of_k.options.b_scale->block = {.kind = Block::Kind::k};
  test::refusal("b_scale", [&] { check(of_k); });
  of_k.args.b_scale = tensor(0x400000, DType::fp32, {300});
  EXPECT_NO_THROW(check(of_k));

  GemmCall mx = right_gemm();
  mx.options.a_scale =
      OperandScale{.scaling = Scaling::mx, .block = {.rows = 1, .cols = 32}, .layout = ScaleLayout::blocked};
  mx.args.a_scale = tensor(0x200000, DType::u8, {128 * 12});
  EXPECT_NO_THROW(check(mx));

  GemmCall batched = right_gemm();
  batched.args.a = tensor(0x100000, DType::e4m3, {4, 100, 300});
  batched.args.a_scale = tensor(0x200000, DType::fp32, {4, 100});
  batched.args.b = tensor(0x300000, DType::e4m3, {1, 200, 300});
  batched.args.b_scale = tensor(0x400000, DType::fp32, {1, 200});
  batched.args.d = tensor(0x500000, DType::bf16, {4, 100, 200});
  EXPECT_EQ(check(batched).batch, 4);

  GemmCall in_place = right_gemm();
  in_place.args.beta = 1.0F;
  in_place.args.c = in_place.args.d;
  EXPECT_NO_THROW(check(in_place));
}

TEST(GemmCheck, Options) {
  expect_error("options.output", [](GemmCall& call) { call.options.output = DType::e5m2; });
  expect_error("options.a_scale.block",
               [](GemmCall& call) { call.options.a_scale->block = {.rows = 1, .cols = 32}; });
  expect_error("options.b_scale.layout",
               [](GemmCall& call) { call.options.b_scale->layout = ScaleLayout::mn_major; });
  expect_error("options.a_scale.layout", [](GemmCall& call) {
    call.options.a_scale = {.scaling = Scaling::mx, .block = {}, .layout = ScaleLayout::mn_major};
  });
  expect_error("options.a_scale.block",
               [](GemmCall& call) { call.options.a_scale = {.scaling = Scaling::mx, .block = row_block}; });
  expect_error("options.a_scale.block", [](GemmCall& call) {
    call.options.a_scale = {.scaling = Scaling::mx, .block = {.kind = Block::Kind::k}};
  });
  expect_error("options.a_scale.block",
               [](GemmCall& call) { call.options.a_scale->block.kind = static_cast<Block::Kind>(99); });
  expect_error("options.accumulation", [](GemmCall& call) {
    call.options.accumulation = Accumulation::fast;
    call.options.a_scale = {.scaling = Scaling::mx, .block = {}};
  });
  expect_error("options.accumulation", [](GemmCall& call) {
    call.options.accumulation = Accumulation::fast;
    call.args.a.dtype = DType::bf16;
  });
}

TEST(GemmCheck, Operands) {
  expect_error("a", [](GemmCall& call) { call.args.a.dtype = DType::fp16; });
  expect_error("b", [](GemmCall& call) { call.args.b.dtype = DType::u8; });
  expect_error("a", [](GemmCall& call) { call.args.a.rank = 1; });
  expect_error("a", [](GemmCall& call) { call.args.a.shape[0] = -1; });
  expect_error("a", [](GemmCall& call) { call.args.a.data = nullptr; });
  expect_error("a", [](GemmCall& call) { call.args.a.pitch = 299; });
  expect_error("b", [](GemmCall& call) { call.args.b.shape[1] = 301; });
  expect_error("b", [](GemmCall& call) { call.args.b = tensor(0x300000, DType::e5m2, {1, 200, 300}); });
  expect_error("a", [](GemmCall& call) {
    call.args.a.shape = {std::numeric_limits<std::int64_t>::max() / 2, 300};
  });
  expect_error("b", [](GemmCall& call) {
    call.args.a = tensor(0x100000, DType::e4m3, {4, 100, 300});
    call.args.b = tensor(0x300000, DType::e4m3, {3, 200, 300});
  });
}

TEST(GemmCheck, Scales) {
  expect_error("a_scale", [](GemmCall& call) { call.args.a_scale.dtype = DType::bf16; });
  expect_error("a_scale", [](GemmCall& call) { call.args.a_scale.shape[0] = 99; });
  expect_error("b_scale", [](GemmCall& call) {
    call.args.b_scale = tensor(0x400000, DType::fp32, {200, 1});
  });
  expect_error("b_scale", [](GemmCall& call) { call.args.b_scale.data = nullptr; });
  expect_error("b_scale", [](GemmCall& call) { call.args.b_scale.pitch = 400; });
  expect_error("b_scale", [](GemmCall& call) { call.options.b_scale.reset(); });
  // The other layout of 128-blocks is told by its extents.
  expect_error("a_scale", [](GemmCall& call) {
    call.options.a_scale = OperandScale{.block = {.rows = 1, .cols = 128}, .layout = ScaleLayout::mn_major};
    call.args.a_scale = tensor(0x200000, DType::fp32, {100, 3});
  });
  expect_error("a_scale", [](GemmCall& call) {
    call.options.a_scale = {.scaling = Scaling::mx, .block = {}};
    call.args.a_scale = tensor(0x200000, DType::fp32, {100, 10});
  });
}

TEST(GemmCheck, Results) {
  expect_error("d", [](GemmCall& call) { call.args.d.dtype = DType::fp32; });
  expect_error("d", [](GemmCall& call) { call.args.d.shape[1] = 199; });
  expect_error("d", [](GemmCall& call) { call.args.d.data = nullptr; });
  expect_error("d", [](GemmCall& call) { call.args.d.data = reinterpret_cast<void*>(0x500001); });
  for (const std::uintptr_t over : {0x100000, 0x200000, 0x300000, 0x400000})
    expect_error("d", [&](GemmCall& call) { call.args.d.data = reinterpret_cast<void*>(over); });
  expect_error("c", [](GemmCall& call) { call.args.beta = 1.0F; });
  expect_error("c", [](GemmCall& call) {
    call.args.beta = 1.0F;
    call.args.c = tensor(0x600000, DType::fp32, {100, 200});
  });
  expect_error("d", [](GemmCall& call) {  // C shifted by a row against D
    call.args.beta = 1.0F;
    call.args.c = tensor(0x500000 + 400, DType::bf16, {100, 200});
  });
  expect_error("alpha", [](GemmCall& call) { call.args.alpha = std::numeric_limits<float>::infinity(); });
  expect_error("beta", [](GemmCall& call) { call.args.beta = std::numeric_limits<float>::quiet_NaN(); });
  expect_error("bias", [](GemmCall& call) { call.args.bias = tensor(0x600000, DType::e4m3, {200}); });
  expect_error("bias", [](GemmCall& call) { call.args.bias = tensor(0x600000, DType::bf16, {100}); });
  expect_error("d", [](GemmCall& call) { call.args.bias = tensor(0x500000, DType::bf16, {200}); });
}

// e4m3 by tokens, its amax, SwiGLU: 100 x 100 of d.
GemmCall quantized() {
  GemmCall call = right_gemm();
  call.options.output = DType::e4m3;
  call.options.amax = true;
  call.options.epilogue = Epilogue::swiglu;
  call.args.d = tensor(0x500000, DType::e4m3, {100, 100});
  call.args.d_scale = tensor(0x600000, DType::fp32, {100});
  call.args.amax = tensor(0x700000, DType::fp32, {1});
  return call;
}

// The same with a code for every 32 columns.
GemmCall requantized() {
  GemmCall call = quantized();
  call.options.requant = Requant{.layout = ScaleLayout::blocked};
  call.args.d_scale = {};
  call.args.d_scales = tensor(0x600000, DType::u8, {128 * 4});
  return call;
}

TEST(GemmCheck, OutputForms) {
  EXPECT_EQ(check(quantized()).n, 200);
  EXPECT_NO_THROW(check(requantized()));
  GemmCall one = quantized();
  one.args.d_scale.shape[0] = 1;
  EXPECT_NO_THROW(check(one));
  GemmCall blocks = requantized();
  blocks.options.requant = Requant{.scaling = Scaling::fp32,
                                   .block = {.rows = 1, .cols = 128},
                                   .rounding = Rounding::pow2,
                                   .layout = ScaleLayout::mn_major};
  blocks.args.d_scales = tensor(0x600000, DType::fp32, {1, 100});
  EXPECT_NO_THROW(check(blocks));

  using Change = std::function<void(GemmCall&)>;
  const auto refused = [](const std::string& argument, GemmCall call, const Change& change) {
    expect_error(argument, [&](GemmCall& other) {
      change(call);
      other = call;
    });
  };
  refused("d", quantized(), [](GemmCall& call) { call.args.d.shape[1] = 200; });
  refused("b", quantized(), [](GemmCall& call) {
    call.args.b.shape[0] = 199;
    call.args.b_scale.shape[0] = 199;
  });
  refused("d_scale", quantized(), [](GemmCall& call) { call.args.d_scale.shape[0] = 99; });
  refused("d_scale", quantized(), [](GemmCall& call) { call.args.d_scale.data = nullptr; });
  refused("d_scale", quantized(), [](GemmCall& call) { call.args.d_scale.dtype = DType::bf16; });
  refused("d_scale", quantized(), [](GemmCall& call) { call.args.d_scale = {}; });
  refused("d_scale", right_gemm(), [](GemmCall& call) { call.args.d_scale = quantized().args.d_scale; });
  refused("d_scales", quantized(), [](GemmCall& call) { call.args.d_scales = requantized().args.d_scales; });
  refused("amax", quantized(), [](GemmCall& call) { call.args.amax.shape[0] = 2; });
  refused("amax", quantized(), [](GemmCall& call) { call.args.amax.dtype = DType::bf16; });
  refused("amax", quantized(), [](GemmCall& call) { call.args.amax.data = nullptr; });
  refused("amax", quantized(), [](GemmCall& call) { call.options.amax = false; });
  refused("amax", quantized(), [](GemmCall& call) { call.args.amax.data = call.args.d.data; });
  refused("amax", quantized(), [](GemmCall& call) { call.args.amax.data = call.args.a.data; });
  refused("d", quantized(), [](GemmCall& call) { call.args.d.data = call.args.d_scale.data; });
  refused("beta", quantized(), [](GemmCall& call) { call.args.beta = 1.0F; });
  refused("beta", right_gemm(), [](GemmCall& call) {
    call.options.epilogue = Epilogue::swiglu_interleaved;
    call.args.d.shape[1] = 100;
    call.args.beta = 1.0F;
  });
  refused("swiglu_alpha", quantized(),
          [](GemmCall& call) { call.args.swiglu_alpha = std::numeric_limits<float>::quiet_NaN(); });
  refused("swiglu_limit", quantized(), [](GemmCall& call) { call.args.swiglu_limit = 0.0F; });
  refused("options.requant", requantized(), [](GemmCall& call) { call.options.output = DType::bf16; });
  refused("options.requant.block", requantized(),
          [](GemmCall& call) { call.options.requant->block.cols = 128; });
  refused("options.requant.rounding", requantized(),
          [](GemmCall& call) { call.options.requant->rounding = Rounding::none; });
  refused("options.requant.layout", requantized(),
          [](GemmCall& call) { call.options.requant->layout = ScaleLayout::mn_major; });
  refused("d_scale", requantized(), [](GemmCall& call) { call.args.d_scale = quantized().args.d_scale; });
  refused("d_scales", requantized(), [](GemmCall& call) { call.args.d_scales.shape[0] = 100 * 4; });
  refused("d_scales", requantized(), [](GemmCall& call) { call.args.d_scales.data = call.args.b.data; });
  refused("amax_cap", requantized(), [](GemmCall& call) { call.args.amax_cap = 0.0F; });
}

// ---- which kernel a call gets

GemmKey key(const GemmCall& call, const char* profile = "h200") {
  const GemmSizes sizes = check(call);
  return gemm_key(gemm_traits(call.options, call.args), sizes, configure::profile(profile));
}

TEST(GemmKey, AlignedCallsGetTheHopperKernel) {
  EXPECT_NE(key(right_gemm()).tile, GemmKey::general);
  EXPECT_EQ(gemm_configuration(key(right_gemm())).kernel, "gemm/dense_fp8");
  EXPECT_EQ(key(right_gemm(), "b200").tile, GemmKey::general);
}

TEST(GemmKey, WhatTheHopperKernelCannotTakeGetsTheGeneralOne) {
  const std::vector<std::function<void(GemmCall&)>> changes = {
      [](GemmCall& call) { call.args.a.pitch = 301; },
      [](GemmCall& call) { call.args.b.data = reinterpret_cast<void*>(0x300001); },
      [](GemmCall& call) { call.options.accumulation = Accumulation::exact; },
      [](GemmCall& call) {
        call.options.a_scale.reset();
        call.args.a_scale = {};
        call.args.a = tensor(0x100000, DType::bf16, {100, 300}, 304);
      },
      [](GemmCall& call) {
        call.options.b_mn_major = true;
        call.args.b = tensor(0x300000, DType::e4m3, {300, 200}, 208);
      },
      [](GemmCall& call) {
        call.args.a = tensor(0x100000, DType::e4m3, {100, 0}, 16);
        call.args.b = tensor(0x300000, DType::e4m3, {200, 0}, 16);
      }};
  for (const auto& change : changes) {
    GemmCall call = right_gemm();
    change(call);
    EXPECT_EQ(key(call).tile, GemmKey::general);
    EXPECT_EQ(gemm_configuration(key(call)).kernel, "gemm/general");
  }
}

TEST(GemmKey, BatchInvariantCallsOfEveryMGetOneKernel) {
  const auto key_of = [](std::int64_t m, bool invariant) {
    GemmCall call = right_gemm();
    call.options.batch_invariant = invariant;
    call.args.a = tensor(0x10000000, DType::e4m3, {m, 5120});
    call.args.a_scale = tensor(0x200000, DType::fp32, {m});
    call.args.b = tensor(0x1000000000, DType::e4m3, {7168, 5120});
    call.args.b_scale = tensor(0x400000, DType::fp32, {7168});
    call.args.d = tensor(0x100000000000, DType::bf16, {m, 7168});
    return key(call);
  };
  for (const std::int64_t m : {1, 17, 64, 200, 4096, 70000}) EXPECT_EQ(key_of(m, true), key_of(1, true)) << m;
  EXPECT_NE(key_of(4096, false), key_of(1, false));
  try {
    key_of((std::int64_t{1} << 31) + 9, true);
    ADD_FAILURE() << "rows that the kernel does not count";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    EXPECT_EQ(error.argument(), "a");
  }
}

TEST(GemmKey, TellsCallsOfDifferentKernelsApart) {
  const std::vector<std::function<void(GemmCall&)>> changes = {
      [](GemmCall&) {},
      [](GemmCall& call) { call.args.a.dtype = DType::e5m2; },
      [](GemmCall& call) { call.args.b.dtype = DType::e4m3; },
      [](GemmCall& call) { call.options.accumulation = Accumulation::fast; },
      [](GemmCall& call) { call.options.accumulation = Accumulation::exact; },
      [](GemmCall& call) { call.args.a.pitch = 301; },
      [](GemmCall& call) { call.args.d.pitch = 201; },
      [](GemmCall& call) { call.args.bias = tensor(0x600000, DType::bf16, {200}); },
      [](GemmCall& call) { call.args.bias = tensor(0x600000, DType::fp32, {200}); },
      [](GemmCall& call) {
        call.args.beta = 1.0F;
        call.args.c = tensor(0x700000, DType::bf16, {100, 200});
      },
      [](GemmCall& call) {
        call.options.output = DType::fp16;
        call.args.d.dtype = DType::fp16;
      },
      [](GemmCall& call) { call.options.batch_invariant = true; },
      [](GemmCall& call) { call = quantized(); },
      [](GemmCall& call) {
        call = quantized();
        call.options.amax = false;
        call.args.amax = {};
      },
      [](GemmCall& call) {
        call = quantized();
        call.options.epilogue = Epilogue::swiglu_interleaved;
      },
      [](GemmCall& call) { call = requantized(); },
      [](GemmCall& call) {
        call = requantized();
        call.options.requant->rounding = Rounding::floor;
      },
      [](GemmCall& call) {
        call = requantized();
        call.options.requant->layout = ScaleLayout::plain;
        call.args.d_scales = tensor(0x600000, DType::u8, {100, 4});
      },
      [](GemmCall& call) {
        call.options.a_scale->block.kind = Block::Kind::tensor;
        call.args.a_scale.shape[0] = 1;
      },
      [](GemmCall& call) {
        call.options.a_scale->block.kind = Block::Kind::k;
        call.args.a_scale.shape[0] = 300;
      }};
  std::vector<GemmKey> keys;
  for (const auto& change : changes) {
    GemmCall call = right_gemm();
    change(call);
    keys.push_back(key(call));
  }
  for (std::size_t i = 0; i < keys.size(); ++i)
    for (std::size_t j = 0; j < keys.size(); ++j) {
      EXPECT_EQ(keys[i] == keys[j], i == j) << i << " " << j;
      EXPECT_EQ(keys[i].hash() == keys[j].hash(), i == j) << i << " " << j;
    }
  GemmCall one_scale = quantized(), capped = requantized();
  one_scale.args.d_scale.shape[0] = 1;
  one_scale.args.swiglu_limit = 7.0F;
  EXPECT_EQ(key(one_scale), key(quantized()));
  capped.args.amax_cap = 1200.0F;
  EXPECT_EQ(key(capped), key(requantized()));
  GemmCall scaled = right_gemm();
  scaled.args.alpha = 3.0F;
  EXPECT_EQ(key(scaled), keys[0]);
}

}  // namespace
}  // namespace mxjit::dispatch
