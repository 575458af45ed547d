// The check of timed results: it accepts the reference's own bytes and sees one wrong byte anywhere it looks.
#include "bench/check.hpp"

#include <gtest/gtest.h>

#include "bench/quantize_case.hpp"
#include "reference/reference.hpp"
#include "safetensors/host_tensor.hpp"

namespace mxjit::bench {
namespace {

TEST(BenchCheck, BlocksIncludeFirstAndLast) {
  EXPECT_EQ(blocks_to_check(1, 7168, 1), (std::vector<std::int64_t>{0}));
  EXPECT_EQ(blocks_to_check(300, 64, 1 << 30), (std::vector<std::int64_t>{0, 128, 256}));
  EXPECT_EQ(blocks_to_check(131072, 5120, 1), (std::vector<std::int64_t>{0, 131072 - 128}));
  const auto some = blocks_to_check(131072, 5120, std::int64_t{8} * 128 * 5120);
  ASSERT_EQ(some.size(), 8U);
  EXPECT_EQ(some.front(), 0);
  EXPECT_EQ(some.back(), 131072 - 128);
}

// The case and its outputs as the reference makes them: no difference; any byte changed: a difference.
void sees_every_output(const QuantizeCase& one, std::int64_t m, std::int64_t n) {
  std::vector<std::uint8_t> x(static_cast<std::size_t>(m * n * 2));
  for (std::size_t i = 0; i < x.size(); i += 2) {
    x[i] = static_cast<std::uint8_t>(i * 37 / 2);
    x[i + 1] = static_cast<std::uint8_t>(0x3C + i * 11 % 7);  // ordinary values
  }
  HostOutputs outputs;
  for (const auto& [name, tensor] : reference::run({"", one.quantize}, {{"x", {DType::bf16, {m, n}, x}}})) {
    outputs[name] = tensor.bytes;
  }
  const auto read_rows = [&](std::int64_t first, std::int64_t count) {
    return std::vector<std::uint8_t>(x.begin() + first * n * 2, x.begin() + (first + count) * n * 2);
  };
  const auto blocks =
      spans_all_rows(one.quantize) ? std::vector<std::int64_t>{0} : blocks_to_check(m, n, 1 << 30);
  EXPECT_EQ(difference_from_reference(one.quantize, outputs, blocks, read_rows), "");
  for (auto& [name, bytes] : outputs) {
    for (const std::size_t at : {std::size_t{0}, bytes.size() / 2, bytes.size() - 1}) {
      bytes[at] = static_cast<std::uint8_t>(bytes[at] ^ 1U);
      EXPECT_NE(difference_from_reference(one.quantize, outputs, blocks, read_rows), "")
          << name << " byte " << at;
      bytes[at] = static_cast<std::uint8_t>(bytes[at] ^ 1U);
    }
    const std::uint8_t last = bytes.back();
    bytes.pop_back();
    EXPECT_NE(difference_from_reference(one.quantize, outputs, blocks, read_rows), "") << name << " short";
    bytes.push_back(last);
  }
}

class BenchCheckCase : public testing::TestWithParam<std::tuple<bool, bool, ScaleLayout, std::int64_t>> {};

TEST_P(BenchCheckCase, SeesEveryOutput) {
  const auto [row, col, layout, m] = GetParam();
  constexpr std::int64_t n = 200;
  const QuantizeCase one = mx_case({m, n}, {row, col}, Rounding::rceil, layout);
  sees_every_output(one, m, n);
}

TEST(BenchCheck, SeesEveryOutputOfFloatScales) {
  for (const Block& block : {Block{.kind = Block::Kind::row, .rows = 1, .cols = 1},
                             Block{.kind = Block::Kind::tensor, .rows = 1, .cols = 1},
                             Block{.rows = 1, .cols = 128}, Block{.rows = 128, .cols = 128}})
    for (const Axes axes : {Axes{true, false}, Axes{true, true}, Axes{false, true}})
      sees_every_output(fp32_case({300, 200}, axes, block), 300, 200);
}

INSTANTIATE_TEST_SUITE_P(Layouts, BenchCheckCase,
                         testing::Values(std::tuple{true, false, ScaleLayout::plain, 300},
                                         std::tuple{true, true, ScaleLayout::plain, 300},
                                         std::tuple{true, true, ScaleLayout::blocked, 300},
                                         std::tuple{false, true, ScaleLayout::blocked, 256},
                                         std::tuple{true, true, ScaleLayout::blocked, 33}));

}  // namespace
}  // namespace mxjit::bench
