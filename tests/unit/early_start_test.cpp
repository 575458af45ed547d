// Which launches say that they may start before what is ahead of them has ended.
#include <gtest/gtest.h>

#include <vector>

#include "unit/on_stub.hpp"

namespace mxjit::dispatch {
namespace {

using driver::stub;
using test::batched_gemm_args;
using test::gemm_args;
using test::row_args;
using test::rowwise;
using test::tensor;

class EarlyStart : public ::testing::Test {
 protected:
  void SetUp() override {
    stub().reset();
    context_ = test::stub_context();
    ContextAccess::state(*context_).start = driver::Start::early;
  }
  /// Launches since the last time, all of them early or none.
  void expect_launches(std::uint64_t count, bool early) {
    EXPECT_EQ(stub().launches, count);
    EXPECT_EQ(stub().early_starts, early ? count : 0);
    stub().launches = stub().early_starts = 0;
  }

  static constexpr CUstream stream = nullptr;
  std::unique_ptr<Context> context_;
};

TEST_F(EarlyStart, IsOnlyForContextsThatAskForIt) {
  const auto plain = test::stub_context();
  plain->quantize({}, row_args(100, 200), stream);
  plain->gemm(rowwise(), gemm_args(128, 512, 256), stream);
  expect_launches(2, false);
}

TEST_F(EarlyStart, IsSaidByEveryEntryAndPlan) {
  const QuantizeArgs args = row_args(100, 200);
  const GemmArgs product = gemm_args(128, 512, 256), general = gemm_args(128, 512, 256, 1);
  PackScalesArgs codes;
  codes.s = tensor(0x10000000, DType::u8, {128, 4});
  codes.s_blocked = tensor(0x20000000, DType::u8, {512});
  for (int call = 0; call < 2; ++call) {  // first ones and warm ones
    context_->quantize({}, args, stream);
    context_->gemm(rowwise(), product, stream);
    context_->gemm(rowwise(), general, stream);
    context_->pack_scales({}, codes, stream);
  }
  expect_launches(8, true);
  context_->plan({}, args).launch(args, stream);
  context_->plan(rowwise(), product).launch(product, stream);
  expect_launches(2, true);
  context_->gemm(rowwise(), batched_gemm_args(3, 128, 512, 256), stream);
  expect_launches(3, true);
}

// Plans put together from loaded kernels. Another context, which shares them, launches in order.
TEST_F(EarlyStart, IsSaidInACapture) {
  const auto plain =
      ContextAccess::make(ContextAccess::state(*context_).device, ContextAccess::state(*context_).libraries,
                          ContextAccess::state(*context_).cache);
  plain->plan({}, row_args(100, 200));
  plain->plan(rowwise(), gemm_args(128, 512, 256));
  stub().capture = CU_STREAM_CAPTURE_STATUS_ACTIVE;
  context_->quantize({}, row_args(100, 200), stream);
  context_->gemm(rowwise(), gemm_args(128, 512, 256), stream);
  expect_launches(2, true);
  plain->quantize({}, row_args(100, 200), stream);
  plain->gemm(rowwise(), gemm_args(128, 512, 256), stream);
  expect_launches(2, false);
}

TEST_F(EarlyStart, IsNotForWhatFollowsAFill) {
  GemmOptions with_amax = rowwise();
  with_amax.amax = true;
  float amax = 1.0F;
  GemmArgs product = gemm_args(128, 512, 256);
  product.amax = {.data = &amax, .dtype = DType::fp32, .rank = 1, .shape = {1}};
  context_->gemm(with_amax, product, stream);
  EXPECT_EQ(amax, 0.0F);
  expect_launches(1, false);

  QuantizeOptions whole{
      .scaling = Scaling::fp32, .block = {.kind = Block::Kind::tensor}, .rounding = Rounding::none};
  QuantizeArgs args = row_args(20000, 1024);  // more tiles than have slots
  args.s_row = tensor(0x30000000, DType::fp32, {1});
  std::vector<std::uint8_t> workspace(workspace_size(whole, args.x) + 256);
  const auto at = (reinterpret_cast<std::uintptr_t>(workspace.data()) + 255) / 256 * 256;
  args.workspace = tensor(at, DType::u8, {static_cast<std::int64_t>(workspace_size(whole, args.x))});
  ASSERT_GT(args.workspace.shape[0], 0);
  context_->quantize(whole, args, stream);
  expect_launches(1, false);
}

// Two launches without a fill. The second one follows a kernel of ours, which any context's may.
TEST_F(EarlyStart, IsForTheSecondPassOverFewTiles) {
  const QuantizeOptions whole{
      .scaling = Scaling::fp32, .block = {.kind = Block::Kind::tensor}, .rounding = Rounding::none};
  QuantizeArgs args = row_args(100, 200);
  args.s_row = tensor(0x30000000, DType::fp32, {1});
  args.workspace = tensor(0x40000000, DType::u8, {static_cast<std::int64_t>(workspace_size(whole, args.x))});
  context_->quantize(whole, args, stream);
  expect_launches(2, true);
  const auto plain = test::stub_context();
  plain->quantize(whole, args, stream);
  EXPECT_EQ(stub().launches, 2U);
  EXPECT_EQ(stub().early_starts, 1U);
}

}  // namespace
}  // namespace mxjit::dispatch
