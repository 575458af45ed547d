#include "bench/check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>

#include "mxjit/error.hpp"
#include "reference/reference.hpp"
#include "safetensors/host_tensor.hpp"

namespace mxjit::bench {
namespace {

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// A span of bytes of a block's output and the place of the same bytes in the whole output.
struct Strip {
  std::int64_t in_block;
  std::int64_t in_whole;
  std::int64_t bytes;
};

/// Where a block's output of `name` lies in the whole output of an (m, n) problem. Everything along n is
/// contiguous; what runs along m is cut into strips.
std::vector<Strip> strips(const std::string& name, const problem::Quantize& quantize, std::int64_t m,
                          std::int64_t n, std::int64_t first, std::int64_t count) {
  constexpr std::int64_t tile = 512;  // bytes of 128 rows by 4 columns of blocked scales
  const Block& block = quantize.recipe.block;
  const bool blocked = quantize.recipe.scale_layout == ScaleLayout::blocked;
  const std::int64_t scale = quantize.recipe.scaling == Scaling::mx ? 1 : 4;
  const bool is_scale = name == "s_row" || name == "s_col";
  if (name == "q_row") return {{0, first * n, count * n}};
  if (is_scale && block.kind == Block::Kind::tensor) return {{0, 0, scale}};
  if (is_scale && block.kind == Block::Kind::row) {
    if (name == "s_row") return {{0, first * scale, count * scale}};
    return {{0, 0, n * scale}};
  }
  if (name == "s_row") {
    const std::int64_t n_blocks = ceil_div(n, block.cols);
    if (!blocked) {
      const std::int64_t row = n_blocks * scale;
      return {{0, first / block.rows * row, ceil_div(count, block.rows) * row}};
    }
    const std::int64_t row_of_tiles = ceil_div(n_blocks, 4) * tile;
    return {{0, first / check_rows * row_of_tiles, row_of_tiles}};
  }
  std::vector<Strip> all;
  if (name == "q_col") {
    for (std::int64_t j = 0; j < n; ++j) all.push_back({j * count, j * m + first, count});
    return all;
  }
  const std::int64_t blocks_here = ceil_div(count, block.cols);
  const std::int64_t blocks_whole = ceil_div(m, block.cols);
  if (blocked) {
    for (std::int64_t j = 0; j < ceil_div(n, 128); ++j) {
      all.push_back({j * tile, (j * ceil_div(blocks_whole, 4) + first / check_rows) * tile, tile});
    }
  } else {
    for (std::int64_t j = 0; j < ceil_div(n, block.rows); ++j) {
      all.push_back(
          {j * blocks_here * scale, (j * blocks_whole + first / block.cols) * scale, blocks_here * scale});
    }
  }
  return all;
}

std::string compare_block(const problem::Quantize& quantize, const HostOutputs& outputs, std::int64_t first,
                          std::int64_t count, std::vector<std::uint8_t> rows) {
  const std::int64_t m = quantize.input.shape[0].min;
  const std::int64_t n = quantize.input.shape[1].min;
  problem::Quantize part = quantize;
  part.input.shape[0] = count;
  TensorMap inputs;
  inputs["x"] = {part.input.dtype, {count, n}, std::move(rows)};
  const TensorMap expected = reference::run({"", part}, inputs);
  for (const auto& [name, whole] : outputs) {
    const std::vector<std::uint8_t>& block = expected.at(name).bytes;
    for (const Strip& strip : strips(name, quantize, m, n, first, count)) {
      const auto begin = block.begin() + strip.in_block;
      const auto mismatch = std::mismatch(begin, begin + strip.bytes, whole.begin() + strip.in_whole);
      if (mismatch.first == begin + strip.bytes) continue;
      return fmt::format("{}: byte {} is {:#04x}, the reference has {:#04x}", name,
                         mismatch.second - whole.begin(), *mismatch.second, *mismatch.first);
    }
  }
  return {};
}

}  // namespace

bool spans_all_rows(const problem::Quantize& quantize) {
  const Block::Kind kind = quantize.recipe.block.kind;
  return kind == Block::Kind::tensor || (kind == Block::Kind::row && quantize.axes.col);
}

std::vector<std::int64_t> blocks_to_check(std::int64_t m, std::int64_t n, std::int64_t budget) {
  const std::int64_t total = ceil_div(m, check_rows);
  const std::int64_t affordable =
      std::max<std::int64_t>(2, budget / (check_rows * std::max<std::int64_t>(1, n)));
  const std::int64_t count = std::min(total, affordable);
  std::vector<std::int64_t> first_rows;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t block = count == 1 ? 0 : i * (total - 1) / (count - 1);
    first_rows.push_back(block * check_rows);
  }
  return first_rows;
}

std::string difference_from_reference(
    const problem::Quantize& quantize, const HostOutputs& outputs, const std::vector<std::int64_t>& blocks,
    const std::function<std::vector<std::uint8_t>(std::int64_t first, std::int64_t count)>& read_rows) {
  const std::int64_t m = quantize.input.shape[0].min;
  for (const problem::TensorDecl& decl : problem::tensors({"", quantize})) {
    if (!decl.output || decl.optional) continue;
    std::int64_t bytes = static_cast<std::int64_t>(size_of(decl.dtype));
    for (const std::int64_t extent : decl.shape) bytes *= extent;
    const auto at = outputs.find(decl.name);
    if (at == outputs.end() || static_cast<std::int64_t>(at->second.size()) != bytes) {
      return fmt::format("{}: expected {} bytes", decl.name, bytes);
    }
  }
  std::mutex mutex;  // read_rows is the caller's, and need not be thread-safe
  std::string difference;
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < blocks.size(); i = next++) {
      const std::int64_t count = spans_all_rows(quantize) ? m : std::min(check_rows, m - blocks[i]);
      std::vector<std::uint8_t> rows;
      {
        const std::scoped_lock lock(mutex);
        if (!difference.empty()) return;
        rows = read_rows(blocks[i], count);
      }
      std::string found;
      try {
        found = compare_block(quantize, outputs, blocks[i], count, std::move(rows));
      } catch (const std::exception& error) {
        found = error.what();
      }
      const std::scoped_lock lock(mutex);
      if (!found.empty() && difference.empty()) difference = std::move(found);
    }
  };
  const std::size_t workers =
      std::min<std::size_t>(blocks.size(), std::max(1U, std::thread::hardware_concurrency()));
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < workers; ++i) threads.emplace_back(work);
  threads.clear();  // joins
  return difference;
}

}  // namespace mxjit::bench
