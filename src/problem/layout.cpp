#include "problem/layout.hpp"

#include "problem/fields.hpp"
#include "problem/vocabulary.hpp"

namespace mxjit::problem {

const Extent& row_extent(const Shape& shape, bool transposed) {
  return shape[shape.size() - (transposed ? 2 : 1)];
}

int widest_align(std::int64_t ld, DType dtype) {
  const auto size = static_cast<std::int64_t>(size_of(dtype));
  for (const std::int64_t align : kAligns) {
    // (ld * size) % align without the product, which may not fit.
    if (ld % align * size % align == 0) return static_cast<int>(align);
  }
  return 1;
}

GemmExtents gemm_extents(const Gemm& op) {
  const Shape& a = op.a.tensor.shape;
  const Shape& b = op.b.tensor.shape;
  return {.m = a[a.size() - 2], .n = b[b.size() - 2], .k = a.back()};
}

Shape gemm_output_shape(const Gemm& op) {
  const GemmExtents extents = gemm_extents(op);
  const Extent n = op.epilogue ? Extent(extents.n.min / 2, extents.n.max / 2) : extents.n;
  const Shape& a = op.a.tensor.shape;
  if (op.groups && op.groups->kind == GemmGroupKind::k) return {op.groups->count, extents.m, n};
  if (a.size() == 2) return {extents.m, n};
  // A batch extent of 1 is broadcast over the other operand's.
  const Extent& lead = !op.groups && a.front() == Extent(1) ? op.b.tensor.shape.front() : a.front();
  return {lead, extents.m, n};
}

std::int64_t Checked::mul(std::int64_t a, std::int64_t b) const {
  std::int64_t result = 0;
  if (__builtin_mul_overflow(a, b, &result)) {
    fail(pointer_, "extents whose tensors count their bytes in int64", "more than 2^63 - 1");
  }
  return result;
}

std::int64_t Checked::add(std::int64_t a, std::int64_t b) const {
  std::int64_t result = 0;
  if (__builtin_add_overflow(a, b, &result)) {
    fail(pointer_, "extents whose tensors count their bytes in int64", "more than 2^63 - 1");
  }
  return result;
}

std::int64_t Checked::bytes(const std::vector<std::int64_t>& shape, DType dtype) const {
  auto total = static_cast<std::int64_t>(size_of(dtype));
  // Strides are products of extents, so {2^40, 2^40, 0} is refused although it holds nothing.
  for (const std::int64_t extent : shape) {
    if (extent > 0) total = mul(total, extent);
  }
  for (const std::int64_t extent : shape) {
    if (extent == 0) total = 0;
  }
  return total;
}

}  // namespace mxjit::problem
