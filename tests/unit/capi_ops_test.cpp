// The C ABI of dequantize, pack_scales, pad_groups and their inverses on the stub driver.
#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

#include "mxjit/mxjit.h"
#include "unit/capi_calls.hpp"

namespace mxjit::capi {
namespace {

using driver::stub;

mxjit_dequantize_args dequantize_args() {
  mxjit_dequantize_args args = MXJIT_DEQUANTIZE_ARGS_INIT;
  args.q = tensor(0x10000000, MXJIT_E4M3, {100, 200});
  args.s = tensor(0x20000000, MXJIT_E8M0, {100, 7});
  args.x = tensor(0x30000000, MXJIT_BF16, {100, 200});
  return args;
}

mxjit_pack_scales_args pack_args() {
  mxjit_pack_scales_args args = MXJIT_PACK_SCALES_ARGS_INIT;
  args.s = tensor(0x10000000, MXJIT_E8M0, {100, 7});
  args.s_blocked = tensor(0x20000000, MXJIT_U8, {128 * 8});
  return args;
}

mxjit_pad_groups_options pad_options() {
  mxjit_pad_groups_options options = MXJIT_PAD_GROUPS_OPTIONS_INIT;
  options.group_count = 3;
  options.alignment = 32;
  return options;
}

mxjit_pad_groups_args pad_args() {
  mxjit_pad_groups_args args = MXJIT_PAD_GROUPS_ARGS_INIT;
  args.x = tensor(0x10000000, MXJIT_BF16, {100, 24});
  args.offsets = tensor(0x20000000, MXJIT_I32, {3});
  args.x_padded = tensor(0x30000000, MXJIT_BF16, {224, 24});  // 100 + 3 * 32, rounded up
  args.starts = tensor(0x40000000, MXJIT_I32, {3});
  args.ends = tensor(0x50000000, MXJIT_I32, {3});
  return args;
}

mxjit_unpad_groups_args unpad_args() {
  const mxjit_pad_groups_args pad = pad_args();
  mxjit_unpad_groups_args args = MXJIT_UNPAD_GROUPS_ARGS_INIT;
  args.x_padded = pad.x_padded;
  args.offsets = pad.offsets;
  args.starts = pad.starts;
  args.x = pad.x;
  return args;
}

class CapiOps : public OnStub {};

TEST_F(CapiOps, EveryEntryLaunches) {
  const auto dequantize = dequantize_args();
  const auto pack = pack_args();
  const auto options = pad_options();
  const auto pad = pad_args();
  const auto unpad = unpad_args();
  EXPECT_EQ(mxjit_dequantize(context_, nullptr, &dequantize, stream), MXJIT_SUCCESS) << mxjit_last_message();
  EXPECT_EQ(mxjit_pack_scales(context_, nullptr, &pack, stream), MXJIT_SUCCESS) << mxjit_last_message();
  EXPECT_EQ(mxjit_unpack_scales(context_, nullptr, &pack, stream), MXJIT_SUCCESS) << mxjit_last_message();
  EXPECT_EQ(mxjit_pad_groups(context_, &options, &pad, stream), MXJIT_SUCCESS) << mxjit_last_message();
  EXPECT_EQ(mxjit_unpad_groups(context_, &options, &unpad, stream), MXJIT_SUCCESS) << mxjit_last_message();
  EXPECT_EQ(stub().launches, 5U);
  EXPECT_EQ(compiler_->compiles, 5);
}

TEST_F(CapiOps, PlansLaunchWhatTheyWereMadeForAndOutliveTheirContext) {
  const auto dequantize = dequantize_args();
  const auto pack = pack_args();
  const auto options = pad_options();
  const auto pad = pad_args();
  const auto unpad = unpad_args();
  auto* context = new mxjit_context{std::move(handle_.context)};
  mxjit_plan *to_numbers = nullptr, *to_blocks = nullptr, *from_blocks = nullptr, *to_padded = nullptr,
             *from_padded = nullptr;
  ASSERT_EQ(mxjit_plan_dequantize(context, nullptr, &dequantize, &to_numbers), MXJIT_SUCCESS);
  ASSERT_EQ(mxjit_plan_pack_scales(context, nullptr, &pack, &to_blocks), MXJIT_SUCCESS);
  ASSERT_EQ(mxjit_plan_unpack_scales(context, nullptr, &pack, &from_blocks), MXJIT_SUCCESS);
  ASSERT_EQ(mxjit_plan_pad_groups(context, &options, &pad, &to_padded), MXJIT_SUCCESS);
  ASSERT_EQ(mxjit_plan_unpad_groups(context, &options, &unpad, &from_padded), MXJIT_SUCCESS);
  EXPECT_EQ(stub().launches, 0U);
  EXPECT_EQ(mxjit_dequantize(context, nullptr, &dequantize, stream), MXJIT_SUCCESS);
  EXPECT_EQ(compiler_->compiles, 5);
  mxjit_context_destroy(context);
  EXPECT_EQ(mxjit_launch_dequantize(to_numbers, &dequantize, stream), MXJIT_SUCCESS) << mxjit_last_message();
  EXPECT_EQ(mxjit_launch_pack_scales(to_blocks, &pack, stream), MXJIT_SUCCESS) << mxjit_last_message();
  EXPECT_EQ(mxjit_launch_pack_scales(from_blocks, &pack, stream), MXJIT_SUCCESS) << mxjit_last_message();
  EXPECT_EQ(mxjit_launch_pad_groups(to_padded, &pad, stream), MXJIT_SUCCESS) << mxjit_last_message();
  EXPECT_EQ(mxjit_launch_unpad_groups(from_padded, &unpad, stream), MXJIT_SUCCESS) << mxjit_last_message();
  EXPECT_EQ(stub().launches, 6U);

  expect_refused(mxjit_launch_dequantize(to_blocks, &dequantize, stream), "plan");
  expect_refused(mxjit_launch_pack_scales(to_numbers, &pack, stream), "plan");
  expect_refused(mxjit_launch_pad_groups(from_padded, &pad, stream), "plan");
  expect_refused(mxjit_launch_unpad_groups(to_padded, &unpad, stream), "plan");
  auto other = dequantize;
  other.q.dtype = MXJIT_E5M2;
  expect_refused(mxjit_launch_dequantize(to_numbers, &other, stream), "q");
  other = dequantize;
  other.x.dtype = MXJIT_FP32;
  expect_refused(mxjit_launch_dequantize(to_numbers, &other, stream), "x");
  other = dequantize;
  other.s.shape[1] = 6;
  expect_refused(mxjit_launch_dequantize(to_numbers, &other, stream), "s");
  other = dequantize;  // another shape is as good
  other.q.shape[0] = other.s.shape[0] = other.x.shape[0] = 3000;
  EXPECT_EQ(mxjit_launch_dequantize(to_numbers, &other, stream), MXJIT_SUCCESS) << mxjit_last_message();
  other.q.shape[0] = other.s.shape[0] = other.x.shape[0] = 0;  // and launches nothing when empty
  EXPECT_EQ(mxjit_launch_dequantize(to_numbers, &other, stream), MXJIT_SUCCESS) << mxjit_last_message();
  auto bytes = pad;
  bytes.x.dtype = bytes.x_padded.dtype = MXJIT_E4M3;
  EXPECT_EQ(mxjit_launch_pad_groups(to_padded, &bytes, stream), MXJIT_SUCCESS) << mxjit_last_message();
  EXPECT_EQ(stub().launches, 8U);

  stub().reset_context(0);
  EXPECT_EQ(mxjit_launch_dequantize(to_numbers, &dequantize, stream), MXJIT_CONTEXT_LOST);
  EXPECT_EQ(mxjit_launch_unpad_groups(from_padded, &unpad, stream), MXJIT_CONTEXT_LOST);
  for (mxjit_plan* plan : {to_numbers, to_blocks, from_blocks, to_padded, from_padded})
    mxjit_plan_destroy(plan);
}

TEST_F(CapiOps, EveryFieldReachesTheCall) {
  mxjit_dequantize_options options = MXJIT_DEQUANTIZE_OPTIONS_INIT;
  options.scale_layout = MXJIT_LAYOUT_BLOCKED;
  options.axis_col = 1;
  options.group_count = 3;
  options.group_alignment = 32;
  auto args = dequantize_args();
  args.q = tensor(0x10000000, MXJIT_E5M2, {200, 100});
  args.q.pitch = 112;
  args.s = tensor(0x20000000, MXJIT_U8, {256 * (4 + 4 * 3)});
  args.offsets = tensor(0x40000000, MXJIT_I32, {3});
  args.status = tensor(0x50000000, MXJIT_I32, {4});
  EXPECT_EQ(mxjit_dequantize(context_, &options, &args, stream), MXJIT_SUCCESS) << mxjit_last_message();
  args.status.shape[0] = 5;
  expect_refused(mxjit_dequantize(context_, &options, &args, stream), "status");
  options = MXJIT_DEQUANTIZE_OPTIONS_INIT;
  options.scaling = MXJIT_SCALING_FP32;
  options.block_kind = MXJIT_BLOCK_ROW;
  args = dequantize_args();
  args.s = tensor(0x20000000, MXJIT_FP32, {100});
  EXPECT_EQ(mxjit_dequantize(context_, &options, &args, stream), MXJIT_SUCCESS) << mxjit_last_message();

  mxjit_pack_scales_options placed = MXJIT_PACK_SCALES_OPTIONS_INIT;
  placed.placement = MXJIT_PLACEMENT_M_GROUPS;
  placed.group_count = 2;
  auto pack = pack_args();
  pack.s_blocked = tensor(0x20000000, MXJIT_U8, {(100 + 2 * 128) * 8});
  pack.offsets = tensor(0x40000000, MXJIT_I32, {2});
  pack.status = tensor(0x50000000, MXJIT_I32, {4});
  EXPECT_EQ(mxjit_pack_scales(context_, &placed, &pack, stream), MXJIT_SUCCESS) << mxjit_last_message();
  pack.offsets.shape[0] = 3;
  expect_refused(mxjit_pack_scales(context_, &placed, &pack, stream), "offsets");

  const auto pads = pad_options();
  auto pad = pad_args();
  pad.status = tensor(0x60000000, MXJIT_I32, {4});
  EXPECT_EQ(mxjit_pad_groups(context_, &pads, &pad, stream), MXJIT_SUCCESS) << mxjit_last_message();
  pad.ends.shape[0] = 2;
  expect_refused(mxjit_pad_groups(context_, &pads, &pad, stream), "ends");
  auto unpad = unpad_args();
  unpad.starts = MXJIT_NO_TENSOR;
  expect_refused(mxjit_unpad_groups(context_, &pads, &unpad, stream), "starts");
}

TEST_F(CapiOps, NullAndValuesOutsideTheirSetAreRefusedByName) {
  const auto dequantize = dequantize_args();
  const auto pack = pack_args();
  const auto options = pad_options();
  const auto pad = pad_args();
  const auto unpad = unpad_args();
  auto* plan = reinterpret_cast<mxjit_plan*>(8);
  expect_refused(mxjit_dequantize(nullptr, nullptr, &dequantize, stream), "context");
  expect_refused(mxjit_dequantize(context_, nullptr, nullptr, stream), "args");
  expect_refused(mxjit_plan_dequantize(context_, nullptr, nullptr, &plan), "args");
  EXPECT_EQ(plan, nullptr);
  expect_refused(mxjit_plan_dequantize(context_, nullptr, &dequantize, nullptr), "plan");
  expect_refused(mxjit_launch_dequantize(nullptr, &dequantize, stream), "plan");
  expect_refused(mxjit_pack_scales(context_, nullptr, nullptr, stream), "args");
  expect_refused(mxjit_unpack_scales(nullptr, nullptr, &pack, stream), "context");
  expect_refused(mxjit_plan_pack_scales(context_, nullptr, &pack, nullptr), "plan");
  expect_refused(mxjit_plan_unpack_scales(context_, nullptr, &pack, nullptr), "plan");
  expect_refused(mxjit_launch_pack_scales(nullptr, &pack, stream), "plan");
  expect_refused(mxjit_pad_groups(context_, nullptr, &pad, stream), "options");
  expect_refused(mxjit_pad_groups(context_, &options, nullptr, stream), "args");
  expect_refused(mxjit_plan_pad_groups(context_, &options, &pad, nullptr), "plan");
  expect_refused(mxjit_launch_pad_groups(nullptr, &pad, stream), "plan");
  expect_refused(mxjit_unpad_groups(context_, nullptr, &unpad, stream), "options");
  expect_refused(mxjit_plan_unpad_groups(context_, &options, &unpad, nullptr), "plan");
  expect_refused(mxjit_launch_unpad_groups(nullptr, &unpad, stream), "plan");

  for (const std::int32_t bad : {-1, 4, 99, INT32_MIN, INT32_MAX}) {
    const auto refused = [&](auto field, const char* name) {
      mxjit_dequantize_options wrong = MXJIT_DEQUANTIZE_OPTIONS_INIT;
      wrong.*field = bad;
      expect_refused(mxjit_dequantize(context_, &wrong, &dequantize, stream), name);
    };
    refused(&mxjit_dequantize_options::scaling, "options.scaling");
    refused(&mxjit_dequantize_options::block_kind, "options.block_kind");
    refused(&mxjit_dequantize_options::scale_layout, "options.scale_layout");
    mxjit_pack_scales_options placed = MXJIT_PACK_SCALES_OPTIONS_INIT;
    placed.placement = bad;
    expect_refused(mxjit_pack_scales(context_, &placed, &pack, stream), "options.placement");
    mxjit_pad_groups_options padded = pad_options();
    padded.reserved = bad;
    expect_refused(mxjit_pad_groups(context_, &padded, &pad, stream), "options.reserved");
  }
  mxjit_pad_groups_options padded = pad_options();
  padded.alignment = 0;
  expect_refused(mxjit_pad_groups(context_, &padded, &pad, stream), "options.alignment");
  EXPECT_EQ(stub().launches, 0U);
  EXPECT_EQ(compiler_->compiles, 0);
}

TEST_F(CapiOps, StructsOfOtherSizesAreUnderstood) {
  struct Newer {
    mxjit_pack_scales_args known = pack_args();
    std::int64_t unknown[3] = {0, 0, 0};
  } newer;
  newer.known.struct_size = sizeof newer;
  EXPECT_EQ(mxjit_pack_scales(context_, nullptr, &newer.known, stream), MXJIT_SUCCESS)
      << mxjit_last_message();
  newer.unknown[1] = 1;
  expect_refused(mxjit_pack_scales(context_, nullptr, &newer.known, stream), "args");
  auto older = dequantize_args();
  older.struct_size = offsetof(mxjit_dequantize_args, offsets);
  older.offsets.rank = 77;
  EXPECT_EQ(mxjit_dequantize(context_, nullptr, &older, stream), MXJIT_SUCCESS) << mxjit_last_message();
  older.struct_size = 4;
  expect_refused(mxjit_dequantize(context_, nullptr, &older, stream), "args.struct_size");
}

}  // namespace
}  // namespace mxjit::capi
