// Every bit pattern of the 16-bit inputs, and every mantissa of fp32, as a block's largest magnitude and as
// an element of blocks of many scales.
#include <gtest/gtest.h>

#include <vector>

#include "device/guarded.hpp"
#include "device/machine.hpp"
#include "device/problems.hpp"

namespace mxjit::device {
namespace {

using problem::Problem;

class EveryPattern : public DeviceTest {};

constexpr int patterns = 1 << 16;
constexpr int block = 32;

// The problem of x with blocks of 32 along one axis: (M, 32) for rows, (32, M) for columns.
Problem problem_of(DType input, DType format, Rounding rounding, const std::vector<std::int64_t>& shape,
                   Axes axes) {
  problem::Quantize quantize;
  quantize.input.dtype = input;
  quantize.input.shape = {shape[0], shape[1]};
  quantize.recipe.format = format;
  quantize.recipe.rounding = rounding;
  quantize.axes = axes;
  return whole(quantize);
}

HostTensor tensor_of(DType dtype, std::int64_t rows, std::int64_t columns,
                     const std::vector<std::uint16_t>& elements) {
  HostTensor tensor{.dtype = dtype, .shape = {rows, columns}, .bytes = {}};
  for (const std::uint16_t element : elements) {
    tensor.bytes.push_back(static_cast<std::uint8_t>(element & 0xFF));
    tensor.bytes.push_back(static_cast<std::uint8_t>(element >> 8));
  }
  return tensor;
}

std::vector<std::uint16_t> transposed(const std::vector<std::uint16_t>& rows_of_32) {
  const std::size_t rows = rows_of_32.size() / block;
  std::vector<std::uint16_t> turned(rows_of_32.size());
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t c = 0; c < block; ++c) turned[c * rows + r] = rows_of_32[r * block + c];
  return turned;
}

// Runs blocks of 32, given one after another, along rows and, turned, down columns; both axes at once too.
void run_blocks(DType input, const std::vector<std::uint16_t>& blocks) {
  const auto count = static_cast<std::int64_t>(blocks.size() / block);
  std::vector<Problem> rows, columns;
  for (const DType format : {DType::e4m3, DType::e5m2})
    for (const Rounding rounding : {Rounding::rceil, Rounding::floor, Rounding::ceil, Rounding::even})
      for (const Axes axes : {Axes{true, false}, Axes{false, true}, Axes{true, true}}) {
        if (axes.row) rows.push_back(problem_of(input, format, rounding, {count, block}, axes));
        if (axes.col) columns.push_back(problem_of(input, format, rounding, {block, count}, axes));
      }
  rows = supported(rows);
  columns = supported(columns);
  ASSERT_FALSE(rows.empty());
  prewarm(rows);
  prewarm(columns);
  const TensorMap along = {{"x", tensor_of(input, count, block, blocks)}};
  const TensorMap down = {{"x", tensor_of(input, block, count, transposed(blocks))}};
  for (const Problem& problem : rows) expect_reference(problem, along);
  for (const Problem& problem : columns) expect_reference(problem, down);
}

std::size_t step() { return small() ? 131 : 1; }

// The pattern leads its block: it stands alone among zeros, at a place that moves.
std::vector<std::uint16_t> as_largest() {
  std::vector<std::uint16_t> blocks;
  for (std::size_t pattern = 0; pattern < patterns; pattern += step()) {
    std::vector<std::uint16_t> one(block, static_cast<std::uint16_t>(pattern % 3 == 0 ? 0x8000 : 0));
    one[pattern % block] = static_cast<std::uint16_t>(pattern);
    blocks.insert(blocks.end(), one.begin(), one.end());
  }
  return blocks;
}

// Every pattern stands beside a leader of each of these magnitudes; larger ones lead in its stead.
std::vector<std::uint16_t> as_element(const std::vector<std::uint16_t>& leaders) {
  std::vector<std::uint16_t> blocks;
  for (const std::uint16_t leader : leaders)
    for (std::size_t pattern = 0; pattern < patterns; pattern += (block - 1) * step()) {
      blocks.push_back(leader);
      for (std::size_t i = 0; i + 1 < block; ++i)
        blocks.push_back(static_cast<std::uint16_t>((pattern + i) % patterns));
    }
  return blocks;
}

TEST_F(EveryPattern, OfBf16AsTheLargest) { run_blocks(DType::bf16, as_largest()); }
TEST_F(EveryPattern, OfFp16AsTheLargest) { run_blocks(DType::fp16, as_largest()); }

TEST_F(EveryPattern, OfBf16AsAnElement) {
  // 1, 1.75, 1.96875, 448, subnormals, the smallest normal, the byte 0 to 1 cutoff and its neighbour, 2^-100,
  // 2^100, the largest.
  run_blocks(DType::bf16, as_element({0x3F80, 0x3FE0, 0x3FFC, 0x43E0, 0x0001, 0x0080, 0x0460, 0x0461, 0x0D80,
                                      0x7180, 0x7F7F}));
}

TEST_F(EveryPattern, OfFp16AsAnElement) {
  // 1, 1.75, 1.998, 448, a subnormal, the smallest normal, 2^-10, the largest.
  run_blocks(DType::fp16, as_element({0x3C00, 0x3F00, 0x3FFE, 0x5F00, 0x0001, 0x0400, 0x1400, 0x7BFF}));
}

// A float scale a row of one element: s is 1 / t of its magnitude, and q the largest number. Every mantissa,
// with the exponents of 1e-12, 1 and the largest numbers.
TEST_F(EveryPattern, OfFp32MantissasUnderAFloatScale) {
  for (const std::uint32_t exponent : {87U, 127U, 254U})
    for (const Rounding rounding : {Rounding::none, Rounding::pow2}) {
      HostTensor x{.dtype = DType::fp32, .shape = {0, 1}, .bytes = {}};
      for (std::uint32_t mantissa = 0; mantissa < 1U << 23; mantissa += small() ? 99991 : 1) {
        const std::uint32_t pattern = exponent << 23 | mantissa;
        for (int byte = 0; byte < 4; ++byte)
          x.bytes.push_back(static_cast<std::uint8_t>(pattern >> (8 * byte)));
        ++x.shape[0];
      }
      problem::Quantize quantize;
      quantize.input.dtype = DType::fp32;
      quantize.input.shape = {x.shape[0], 1};
      quantize.recipe.scaling = Scaling::fp32;
      quantize.recipe.rounding = rounding;
      quantize.recipe.block = {.kind = Block::Kind::row, .rows = 1, .cols = 1};
      expect_reference(whole(quantize), {{"x", x}});
    }
}

// Every pattern as the largest of a row, and as an element beside every leader.
void run_rows(DType input, const std::vector<std::uint16_t>& blocks) {
  const auto count = static_cast<std::int64_t>(blocks.size() / block);
  const TensorMap inputs = {{"x", tensor_of(input, count, block, blocks)}};
  for (const DType format : {DType::e4m3, DType::e5m2})
    for (const Rounding rounding : {Rounding::none, Rounding::pow2}) {
      problem::Problem problem = problem_of(input, format, rounding, {count, block}, {true, false});
      auto& recipe = std::get<problem::Quantize>(problem.op).recipe;
      recipe.scaling = Scaling::fp32;
      recipe.block = {.kind = Block::Kind::row, .rows = 1, .cols = 1};
      expect_reference(problem, inputs);
    }
}

TEST_F(EveryPattern, UnderAFloatScale) {
  for (const DType input : {DType::bf16, DType::fp16}) {
    run_rows(input, as_largest());
    run_rows(input, as_element({0x3C00, 0x3F80, 0x43E0, 0x0001, 0x7BFF, 0x7F7F, 0x7C00, 0x7F80}));
  }
}

}  // namespace
}  // namespace mxjit::device
