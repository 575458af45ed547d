// Tensors past 2^31 elements: their first and last rows against the reference of those rows alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "device/guarded.hpp"
#include "device/machine.hpp"
#include "device/problems.hpp"
#include "reference/reference.hpp"

namespace mxjit::device {
namespace {

using problem::Problem;

class LargeTensors : public DeviceTest {};

constexpr std::int64_t m = 175000;
constexpr std::int64_t n = 12288;
// Rows from here on are compared: a multiple of 128, so that their blocks and tiles are whole up to the last.
constexpr std::int64_t first_row = (m - 1) / 128 * 128 - 128;

struct Recipe {
  const char* name;
  Axes axes;
  ScaleLayout layout = ScaleLayout::plain;
  Scaling scaling = Scaling::mx;
  Block block = {};
};

Problem problem_of(std::int64_t rows, const Recipe& recipe) {
  problem::Quantize quantize;
  quantize.input.shape = {rows, n};
  quantize.recipe.scaling = recipe.scaling;
  if (recipe.scaling == Scaling::fp32) quantize.recipe.rounding = Rounding::none;
  quantize.recipe.block = recipe.block;
  quantize.recipe.scale_layout = recipe.layout;
  quantize.axes = recipe.axes;
  return whole(quantize);
}

std::vector<std::uint8_t> read_bytes(const driver::DeviceBuffer& buffer, std::size_t offset,
                                     std::size_t bytes) {
  std::vector<std::uint8_t> read(bytes);
  buffer.read(read.data(), bytes, Machine::get().stream(), offset);
  Machine::get().synchronize();
  return read;
}

// The rows `from` .. `to` of a matrix of `pitch` bytes a row, columns `left` .. `left + bytes`.
std::vector<std::uint8_t> columns_of(const driver::DeviceBuffer& buffer, std::size_t rows, std::size_t pitch,
                                     std::size_t left, std::size_t bytes) {
  const std::vector<std::uint8_t> all = read_bytes(buffer, 0, rows * pitch);
  std::vector<std::uint8_t> kept;
  for (std::size_t row = 0; row < rows; ++row) {
    const auto from = all.begin() + static_cast<std::ptrdiff_t>(row * pitch + left);
    kept.insert(kept.end(), from, from + static_cast<std::ptrdiff_t>(bytes));
  }
  return kept;
}

// Of the outputs of all rows, what belongs to the `rows` rows from `row` on, in stored order.
TensorMap cut(const std::map<std::string, driver::DeviceBuffer>& buffers, const Recipe& recipe,
              std::int64_t row, std::int64_t rows) {
  const auto size = [](std::int64_t value) { return static_cast<std::size_t>(value); };
  TensorMap outputs = {};
  for (const problem::TensorDecl& decl : problem::tensors(problem_of(rows, recipe)))
    if (decl.output) outputs[decl.name] = {.dtype = decl.dtype, .shape = decl.shape, .bytes = {}};
  const bool blocked = recipe.layout == ScaleLayout::blocked;
  if (recipe.axes.row) {
    outputs["q_row"].bytes = read_bytes(buffers.at("q_row"), size(row * n), size(rows * n));
    const std::int64_t scales = recipe.scaling == Scaling::mx ? n / 32 : 4;  // bytes a row
    outputs["s_row"].bytes = read_bytes(buffers.at("s_row"), size(row * scales),
                                        size((blocked ? (rows + 127) / 128 * 128 : rows) * scales));
  }
  if (!recipe.axes.col) return outputs;
  outputs["q_col"].bytes = columns_of(buffers.at("q_col"), size(n), size(m), size(row), size(rows));
  const std::int64_t codes = (rows + 31) / 32;
  if (!blocked) {
    outputs["s_col"].bytes =
        columns_of(buffers.at("s_col"), size(n), size((m + 31) / 32), size(row / 32), size(codes));
  } else {
    // A row of tiles is 128 rows of the transposed matrix; a tile is four codes of each.
    const std::int64_t tiles = (m + 127) / 128;
    outputs["s_col"].bytes = columns_of(buffers.at("s_col"), size(n / 128), size(tiles * 512),
                                        size(row / 128 * 512), size((codes + 3) / 4 * 512));
  }
  return outputs;
}

TEST_F(LargeTensors, FirstAndLastRowsPast31Bits) {
  static_assert(m * n > (std::int64_t{1} << 31));
  if (small()) GTEST_SKIP() << "MXJIT_DEVICE_SMALL is set";
  const Machine& machine = Machine::get();
  std::size_t left = 0, total = 0;
  driver::check(machine.api(), machine.api().mem_get_info(&left, &total), "cuMemGetInfo");
  if (left < (std::size_t{12} << 30))
    GTEST_SKIP() << "needs 12 GiB of device memory, has " << (left >> 20) << " MiB";

  Random random(30);
  constexpr Axes row{true, false}, both{true, true};
  for (const Recipe& recipe : {Recipe{"row", row}, Recipe{"row blocked", row, ScaleLayout::blocked},
                               Recipe{"dual", both}, Recipe{"dual blocked", both, ScaleLayout::blocked},
                               Recipe{"fp32 row", row, ScaleLayout::plain, Scaling::fp32,
                                      Block{.kind = Block::Kind::row, .rows = 1, .cols = 1}}}) {
    SCOPED_TRACE(recipe.name);
    const Problem whole = problem_of(m, recipe);
    std::map<std::string, driver::DeviceBuffer> buffers;
    dispatch::DeviceTensors tensors;
    for (const problem::TensorDecl& decl : problem::tensors(whole)) {
      std::size_t bytes = size_of(decl.dtype);
      Tensor tensor{.dtype = decl.dtype, .rank = static_cast<int>(decl.shape.size())};
      std::ranges::copy(decl.shape, tensor.shape.begin());
      for (const std::int64_t extent : decl.shape) bytes *= static_cast<std::size_t>(extent);
      driver::DeviceBuffer buffer(machine.api(), bytes);
      buffer.fill(decl.output ? 0xA5 : 0x3F, machine.stream());
      tensor.data = buffer.data();
      tensors[decl.name] = tensor;
      buffers[decl.name] = std::move(buffer);
    }
    const std::int64_t tail = m - first_row;
    const HostTensor head_x = random_tensor(DType::bf16, {256, n}, random);
    const HostTensor tail_x = random_tensor(DType::bf16, {tail, n}, random);
    buffers["x"].write(head_x.bytes.data(), head_x.bytes.size(), machine.stream());
    buffers["x"].write(tail_x.bytes.data(), tail_x.bytes.size(), machine.stream(),
                       static_cast<std::size_t>(first_row * n * 2));
    dispatch::launch_problem(machine.context(), whole, tensors, machine.stream());
    machine.synchronize();
    {
      SCOPED_TRACE("first rows");
      expect_equal(cut(buffers, recipe, 0, 256), reference::run(problem_of(256, recipe), {{"x", head_x}}));
    }
    {
      SCOPED_TRACE("last rows");
      expect_equal(cut(buffers, recipe, first_row, tail),
                   reference::run(problem_of(tail, recipe), {{"x", tail_x}}));
    }
  }
}

}  // namespace
}  // namespace mxjit::device
