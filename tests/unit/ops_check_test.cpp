// What calls of dequantize, pack_scales, unpack_scales, pad_groups and unpad_groups may look like: rules
// broken one at a time, from calls that are right. Their keys and problems agree with the configurations that
// a prewarm of the problem compiles.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "configure/configure.hpp"
#include "dispatch/dequantize_call.hpp"
#include "dispatch/pack_call.hpp"
#include "dispatch/pad_call.hpp"
#include "unit/on_stub.hpp"
#include "unit/refusal.hpp"

namespace mxjit::dispatch {
namespace {

using test::tensor;

void expect_refused(const std::string& argument, const OpCall& call) {
  test::refusal(argument, [&] { call.check(); });
}

// The problem of a right call is valid and leads to the call's own kernel.
void expect_right(const OpCall& call) {
  EXPECT_NO_THROW(call.check());
  const problem::Problem problem = call.problem();
  EXPECT_NO_THROW(problem::validate(problem));
  const auto all = configure::configure(problem, configure::default_profile("sm_90a"));
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all.front(), call.configuration());
}

// Buffers lie 1 MiB from each other.
struct Dequantization {
  DequantizeOptions options;
  DequantizeArgs args;
};

Dequantization dequantization() {
  Dequantization call;
  call.args.q = tensor(0x100000, DType::e4m3, {100, 200}, 208);
  call.args.s = tensor(0x200000, DType::e8m0, {100, 7});
  call.args.x = tensor(0x300000, DType::bf16, {100, 200});
  return call;
}

TEST(DequantizeCheck, AcceptsRightCalls) {
  Dequantization call = dequantization();
  expect_right(DequantizeCall(call.options, call.args));

  call.options.axis_col = true;
  call.options.scale_layout = ScaleLayout::blocked;
  call.options.groups = {.count = 3, .alignment = 32};
  call.args.q = tensor(0x100000, DType::e5m2, {200, 100});
  call.args.s = tensor(0x200000, DType::u8, {256 * (4 + 4 * 3)});
  call.args.offsets = tensor(0x400000, DType::i32, {3});
  expect_right(DequantizeCall(call.options, call.args));
  call.options.axis_col = false;
  call.args.q = tensor(0x100000, DType::e5m2, {100, 200});
  call.args.s = tensor(0x200000, DType::u8, {(100 + 128 * 3) * 8});
  expect_right(DequantizeCall(call.options, call.args));

  call = dequantization();
  call.options.scaling = Scaling::fp32;
  call.options.block = {.kind = Block::Kind::row};
  call.options.axis_col = true;
  call.options.groups = {.count = 3, .alignment = 1};
  call.args.q = tensor(0x100000, DType::e5m2, {200, 100});
  call.args.s = tensor(0x200000, DType::fp32, {3, 200});
  call.args.offsets = tensor(0x400000, DType::i32, {3});
  expect_right(DequantizeCall(call.options, call.args));
}

TEST(DequantizeCheck, NamesWhatIsWrong) {
  const auto refuse = [](const std::string& argument, const std::function<void(Dequantization&)>& change) {
    Dequantization call = dequantization();
    change(call);
    expect_refused(argument, DequantizeCall(call.options, call.args));
  };
  refuse("q", [](auto& c) { c.args.q.dtype = DType::bf16; });
  refuse("q", [](auto& c) { c.args.q.shape[1] = 199; });
  refuse("q", [](auto& c) { c.options.axis_col = true; });
  refuse("q", [](auto& c) { c.args.q.pitch = 199; });
  refuse("q", [](auto& c) { c.args.q.data = nullptr; });
  refuse("s", [](auto& c) { c.args.s.dtype = DType::fp32; });
  refuse("s", [](auto& c) { c.args.s.shape[1] = 6; });
  refuse("s", [](auto& c) { c.args.s.pitch = 8; });
  refuse("x", [](auto& c) { c.args.x.dtype = DType::fp64; });
  refuse("x", [](auto& c) { c.args.x.rank = 4; });
  refuse("x", [](auto& c) { c.args.x.data = reinterpret_cast<void*>(0x300001); });
  refuse("x", [](auto& c) { c.args.x.data = c.args.q.data; });
  refuse("options.block", [](auto& c) { c.options.block.cols = 64; });
  refuse("options.scale_layout", [](auto& c) { c.options.scale_layout = ScaleLayout::mn_major; });
  refuse("options.groups.alignment", [](auto& c) { c.options.groups = {.count = 2, .alignment = 16}; });
  refuse("offsets", [](auto& c) { c.options.groups = {.count = 2, .alignment = 32}; });
  refuse("options.groups", [](auto& c) {
    c.options.scaling = Scaling::fp32;
    c.options.block = {.kind = Block::Kind::tensor};
    c.options.groups = {.count = 2, .alignment = 32};
  });
}

struct Pack {
  PackScalesOptions options{.placement = Placement::m_groups, .groups = 2};
  PackScalesArgs args{.s = tensor(0x100000, DType::u8, {100, 7}),
                      .s_blocked = tensor(0x200000, DType::e8m0, {(100 + 256) * 8}),
                      .offsets = tensor(0x300000, DType::i32, {2})};
};

TEST(PackCheck, AcceptsRightCalls) {
  Pack call;
  for (const bool unpack : {false, true}) expect_right(PackCall(unpack, call.options, call.args));
  call.options.placement = Placement::k_groups;
  call.args.s_blocked.shape[0] = 128 * (7 + 8);
  for (const bool unpack : {false, true}) expect_right(PackCall(unpack, call.options, call.args));
  call.options = {};
  call.args.s_blocked.shape[0] = 128 * 8;
  for (const bool unpack : {false, true}) expect_right(PackCall(unpack, call.options, call.args));
  call.options.placement = Placement::per_expert;
  call.args.s = tensor(0x100000, DType::u8, {3, 100, 7}, 9);
  call.args.s_blocked.shape[0] = 3 * 128 * 8;
  for (const bool unpack : {false, true}) expect_right(PackCall(unpack, call.options, call.args));
}

TEST(PackCheck, NamesWhatIsWrong) {
  for (const bool unpack : {false, true}) {
    const auto refuse = [&](const std::string& argument, const std::function<void(Pack&)>& change) {
      Pack call;
      change(call);
      expect_refused(argument, PackCall(unpack, call.options, call.args));
    };
    refuse("options.groups", [](auto& c) { c.options.groups = 0; });
    refuse("options.groups", [](auto& c) { c.options.groups = 1025; });
    refuse("options.groups", [](auto& c) { c.options.placement = Placement::dense; });
    refuse("options.placement", [](auto& c) { c.options.placement = static_cast<Placement>(9); });
    refuse("s", [](auto& c) { c.args.s.dtype = DType::bf16; });
    refuse("s", [](auto& c) { c.args.s.rank = 3; });
    refuse("s", [](auto& c) { c.args.s.shape[0] = -1; });
    refuse("s_blocked", [](auto& c) { c.args.s_blocked.shape[0] -= 1; });
    refuse("s_blocked", [](auto& c) { c.args.s_blocked.data = c.args.s.data; });
    refuse("offsets", [](auto& c) { c.args.offsets.dtype = DType::i64; });
    refuse("offsets", [](auto& c) { c.args.offsets.shape[0] = 3; });
    refuse("status", [](auto& c) { c.args.status = tensor(0x400000, DType::i32, {3}); });
  }
}

struct Pad {
  PadGroupsOptions options{.groups = 2, .alignment = 32};
  PadGroupsArgs args{.x = tensor(0x100000, DType::bf16, {100, 24}),
                     .offsets = tensor(0x200000, DType::i32, {2}),
                     .x_padded = tensor(0x300000, DType::bf16, {192, 24}),
                     .starts = tensor(0x400000, DType::i32, {2}),
                     .ends = tensor(0x500000, DType::i32, {2})};
};

TEST(PadCheck, AcceptsRightCalls) {
  const Pad call;
  expect_right(PadCall(call.options, call.args));
  const UnpadGroupsArgs unpad{.x_padded = call.args.x_padded,
                              .offsets = call.args.offsets,
                              .starts = call.args.starts,
                              .x = call.args.x};
  expect_right(PadCall(call.options, unpad));
}

TEST(PadCheck, NamesWhatIsWrong) {
  const auto refuse = [](const std::string& argument, const std::function<void(Pad&)>& change) {
    Pad call;
    change(call);
    expect_refused(argument, PadCall(call.options, call.args));
  };
  refuse("options.groups", [](auto& c) { c.options.groups = 0; });
  refuse("options.alignment", [](auto& c) { c.options.alignment = 0; });
  refuse("options.alignment", [](auto& c) { c.options.alignment = std::int64_t{1} << 31; });
  refuse("options.alignment", [](auto& c) { c.options.alignment = 0x60000000; });
  refuse("x", [](auto& c) { c.args.x.dtype = DType::i32; });
  refuse("x", [](auto& c) { c.args.x.rank = 1; });
  refuse("x_padded", [](auto& c) { c.args.x_padded.dtype = DType::fp16; });
  refuse("x_padded", [](auto& c) { c.args.x_padded.shape[0] = 160; });
  refuse("x_padded", [](auto& c) { c.args.x_padded.data = c.args.x.data; });
  refuse("offsets", [](auto& c) { c.args.offsets.data = nullptr; });
  refuse("starts", [](auto& c) { c.args.starts.shape[0] = 1; });
  refuse("ends", [](auto& c) { c.args.ends.dtype = DType::u32; });
  refuse("ends", [](auto& c) { c.args.ends.data = c.args.starts.data; });
}

}  // namespace
}  // namespace mxjit::dispatch
