// Which rows of A meet which matrix of B over which part of the contraction.
#include <fmt/format.h>

#include <numeric>

#include "mxjit/error.hpp"
#include "reference/gemm.hpp"
#include "reference/matrix.hpp"

namespace mxjit::reference {
namespace {

std::vector<std::int64_t> row_range(std::int64_t first, std::int64_t end) {
  std::vector<std::int64_t> rows(static_cast<std::size_t>(end - first));
  std::iota(rows.begin(), rows.end(), first);
  return rows;
}

std::vector<Product> batched(const problem::Gemm& op, std::int64_t m, std::int64_t k) {
  const std::int64_t a_count = leading_count(op.a.tensor.shape);
  const std::int64_t b_count = leading_count(op.b.tensor.shape);
  // A batch extent of 1 is broadcast over the other operand's, which may be zero.
  const std::int64_t count = a_count == 1 ? b_count : a_count;
  std::vector<Product> products;
  for (std::int64_t i = 0; i < count; ++i) {
    products.push_back({a_count == 1 ? 0 : i, row_range(0, m), b_count == 1 ? 0 : i, 0, k, 0, i * m});
  }
  return products;
}

std::vector<Product> by_counts(const HostTensor& counts, std::int64_t m, std::int64_t k) {
  std::vector<Product> products;
  for (std::int64_t g = 0; g < counts.elements(); ++g) {
    const std::int64_t count = read_as<std::int32_t>(counts, g);
    if (count < 0 || count > m) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("counts[{}] = {}: expected at least 0 and at most {}", g, count, m), "counts");
    }
    products.push_back({g, row_range(0, count), g, 0, k, g, g * m});
  }
  return products;
}

std::vector<Product> by_ids(const HostTensor& ids, std::int64_t groups, std::int64_t k) {
  std::vector<Product> products(static_cast<std::size_t>(groups));
  for (std::int64_t g = 0; g < groups; ++g) products[static_cast<std::size_t>(g)] = {0, {}, g, 0, k, g, 0};
  for (std::int64_t r = 0; r < ids.elements(); ++r) {
    const std::int64_t id = read_as<std::int32_t>(ids, r);
    if (id < -1 || id >= groups) {
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format("ids[{}] = {}: expected -1, which skips the row, or less than {}", r, id, groups),
          "ids");
    }
    if (id >= 0) products[static_cast<std::size_t>(id)].rows.push_back(r);
  }
  return products;
}

// Codes that are placed group by group need groups that end with a block.
std::int64_t contraction_alignment(const problem::Operand& operand) {
  const bool placed = operand.scaling && operand.scaling->layout == ScaleLayout::blocked;
  return placed ? operand.scaling->block.cols : 1;
}

}  // namespace

std::vector<std::int64_t> group_ends(const problem::Gemm& op, const TensorMap& inputs) {
  if (!op.groups) return {};
  switch (op.groups->kind) {
    case problem::GemmGroupKind::m:
      return read_offsets(inputs.at("offsets"), extent(op.a.tensor.shape, 1), 1);
    case problem::GemmGroupKind::k:
      return read_offsets(inputs.at("offsets"), extent(op.a.tensor.shape, 0),
                          std::lcm(contraction_alignment(op.a), contraction_alignment(op.b)));
    default:
      return {};
  }
}

std::vector<Product> list_products(const problem::Gemm& op, const TensorMap& inputs,
                                   const std::vector<std::int64_t>& ends) {
  const std::int64_t m = extent(op.a.tensor.shape, 1);
  const std::int64_t k = extent(op.a.tensor.shape, 0);
  if (!op.groups) return batched(op, m, k);
  if (op.groups->kind == problem::GemmGroupKind::m_masked) return by_counts(inputs.at("counts"), m, k);
  if (op.groups->kind == problem::GemmGroupKind::ids) return by_ids(inputs.at("ids"), op.groups->count, k);

  std::vector<Product> products;
  std::int64_t first = 0;
  for (const std::int64_t end : ends) {
    const auto g = static_cast<std::int64_t>(products.size());
    if (op.groups->kind == problem::GemmGroupKind::k) {
      products.push_back({0, row_range(0, m), 0, first, end, g, g * m});
    } else {
      products.push_back({0, row_range(first, end), g, 0, k, g, 0});
    }
    first = end;
  }
  return products;
}

}  // namespace mxjit::reference
