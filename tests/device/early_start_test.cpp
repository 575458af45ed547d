// Kernels that start before the one ahead of them has ended: a chain that hands results on in buffers it uses
// again and again, launched and replayed from a graph, gives the bytes of launches in order.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "device/backend.hpp"
#include "device/machine.hpp"
#include "mxjit/context.hpp"

namespace mxjit::device {
namespace {

class EarlyStarts : public DeviceTest {};

// y = x W^T, y quantized by rows, then again from there: every kernel reads what the one before it wrote, and
// overwrites what the one before that one read.
class Chain {
 public:
  static constexpr int links = 6;

  explicit Chain(std::int64_t extent) : extent_(extent) {
    const Machine& machine = Machine::get();
    for (int i = 0; i < links; ++i) {
      std::vector<std::uint16_t> values(elements());
      for (std::size_t at = 0; at < values.size(); ++at) {
        const auto value = static_cast<float>((at * 2654435761U >> 7) % 23) - 11.0F + static_cast<float>(i);
        values[at] = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16);
      }
      x_.push_back(filled(values.data(), values.size() * 2));
      out_.emplace_back(machine.api(), elements());
    }
    std::vector<std::uint8_t> weights(elements());
    for (std::size_t at = 0; at < weights.size(); ++at)
      weights[at] = static_cast<std::uint8_t>(at * 40503 >> 5 & 0xB7);  // finite, of either sign
    w_ = filled(weights.data(), weights.size());
    const std::vector<float> ones(static_cast<std::size_t>(extent), 1.0F);
    w_scale_ = filled(ones.data(), ones.size() * sizeof(float));
    q_ = driver::DeviceBuffer(machine.api(), elements());
    y_ = driver::DeviceBuffer(machine.api(), 2 * elements());
    y_.fill(0xA5, machine.stream());  // initcheck does not see what the copy engine writes
    scales_ = driver::DeviceBuffer(machine.api(), static_cast<std::size_t>(extent) * sizeof(float));
    machine.synchronize();
  }

  void launch(Context& context, CUstream stream) const {
    for (int i = 0; i < links; ++i) {
      const auto at = static_cast<std::size_t>(i);
      quantize(context, x_[at].data(), q_.data(), stream);
      GemmOptions options;
      options.a_scale = options.b_scale = OperandScale{.block = {.kind = Block::Kind::row}};
      GemmArgs args;
      args.a = tensor(q_.data(), DType::e4m3);
      args.a_scale = vector(scales_.data());
      args.b = tensor(w_.data(), DType::e4m3);
      args.b_scale = vector(w_scale_.data());
      args.d = tensor(y_.data(), DType::bf16);
      context.gemm(options, args, stream);
      quantize(context, y_.data(), out_[at].data(), stream);
    }
  }

  void dirty() {
    for (driver::DeviceBuffer& out : out_) out.fill(0xA5, Machine::get().stream());
  }

  std::vector<std::vector<std::uint8_t>> read() const {
    std::vector<std::vector<std::uint8_t>> all;
    for (const driver::DeviceBuffer& out : out_) {
      all.emplace_back(elements());
      out.read(all.back().data(), all.back().size(), Machine::get().stream());
    }
    Machine::get().synchronize();
    return all;
  }

 private:
  std::size_t elements() const { return static_cast<std::size_t>(extent_ * extent_); }

  static driver::DeviceBuffer filled(const void* from, std::size_t bytes) {
    driver::DeviceBuffer buffer(Machine::get().api(), bytes);
    buffer.write(from, bytes, Machine::get().stream());
    Machine::get().synchronize();
    return buffer;
  }
  Tensor tensor(void* data, DType dtype) const {
    return {.data = data, .dtype = dtype, .rank = 2, .shape = {extent_, extent_}};
  }
  Tensor vector(void* data) const {
    return {.data = data, .dtype = DType::fp32, .rank = 1, .shape = {extent_}};
  }
  void quantize(Context& context, void* from, void* to, CUstream stream) const {
    const QuantizeOptions options{
        .scaling = Scaling::fp32, .block = {.kind = Block::Kind::row}, .rounding = Rounding::none};
    QuantizeArgs args;
    args.x = tensor(from, DType::bf16);
    args.q_row = tensor(to, DType::e4m3);
    args.s_row = vector(scales_.data());
    context.quantize(options, args, stream);
  }

  std::int64_t extent_;
  std::vector<driver::DeviceBuffer> x_, out_;
  driver::DeviceBuffer w_, w_scale_, q_, y_, scales_;
};

TEST_F(EarlyStarts, AChainGivesTheBytesOfLaunchesInOrder) {
  const Machine& machine = Machine::get();
  const auto in_order = machine.cold_context(), early = machine.cold_context();
  dispatch::ContextAccess::state(*early).start = driver::Start::early;
  for (const std::int64_t extent : backend_is_slow() || small() ? std::vector<std::int64_t>{128}
                                                                : std::vector<std::int64_t>{128, 512, 3072}) {
    SCOPED_TRACE(extent);
    Chain chain(extent);
    chain.dirty();
    chain.launch(*in_order, machine.stream());
    const auto expected = chain.read();
    for (std::size_t i = 1; i < expected.size(); ++i) ASSERT_NE(expected[i], expected[0]) << i;

    for (int repeat = 0; repeat < (small() ? 1 : 10); ++repeat) {
      chain.dirty();
      chain.launch(*early, machine.stream());
      EXPECT_EQ(chain.read(), expected) << repeat;
    }
    const driver::OwnedGraphExec graph = machine.captured([&] { chain.launch(*early, machine.stream()); },
                                                          CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    for (int repeat = 0; repeat < (small() ? 1 : 10); ++repeat) {
      chain.dirty();
      machine.run(graph);
      EXPECT_EQ(chain.read(), expected) << "replay " << repeat;
    }
  }
}

// Fills and copies ahead of a kernel, in a stream and in a graph.
TEST_F(EarlyStarts, WhatFollowsAFillSeesIt) {
  const Machine& machine = Machine::get();
  const driver::Api& api = machine.api();
  const auto early = machine.cold_context();
  dispatch::ContextAccess::state(*early).start = driver::Start::early;
  constexpr std::int64_t m = 256, n = 512;
  driver::DeviceBuffer x(api, m * n), s(api, m * n / 32), y(api, m * n * 2);
  DequantizeOptions options;
  options.scaling = Scaling::mx;
  DequantizeArgs args;
  args.q = {.data = x.data(), .dtype = DType::e4m3, .rank = 2, .shape = {m, n}};
  args.s = {.data = s.data(), .dtype = DType::e8m0, .rank = 2, .shape = {m, n / 32}};
  args.x = {.data = y.data(), .dtype = DType::bf16, .rank = 2, .shape = {m, n}};
  const auto run = [&] {
    x.fill(0x38, machine.stream());  // 1
    s.fill(128, machine.stream());   // 2
    early->dequantize(options, args, machine.stream());
  };
  const auto expect_twos = [&] {
    std::vector<std::uint16_t> got(m * n);
    y.read(got.data(), got.size() * 2, machine.stream());
    machine.synchronize();
    EXPECT_EQ(std::count(got.begin(), got.end(), 0x4000), m * n);
  };
  run();
  expect_twos();
  const driver::OwnedGraphExec graph = machine.captured(run, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  for (driver::DeviceBuffer* buffer : {&x, &s, &y}) buffer->fill(0, machine.stream());
  machine.run(graph);
  expect_twos();
}

}  // namespace
}  // namespace mxjit::device
