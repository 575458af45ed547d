// Shapes and sizes that follow from a problem's fields. Pure arithmetic, shared by defaults, checks and
// tensors.
#pragma once

#include <cstdint>
#include <string>

#include "problem/problem.hpp"

namespace mxjit::problem {

/// The extent of what memory holds contiguously: the last axis, or the one before it where memory is the
/// transpose. The shape has rank 2 or more.
const Extent& row_extent(const Shape& shape, bool transposed);
/// The largest of 16, 8, 4, 2, 1 that divides `ld` elements of `dtype`, in bytes.
int widest_align(std::int64_t ld, DType dtype);

/// The logical extents of a product.
struct GemmExtents {
  Extent m, n, k;
};
GemmExtents gemm_extents(const Gemm& op);
/// (M,N), (B,M,N), (G,Mmax,N) or, for "k" groups, (G,M,N); N halves under the swiglu epilogue.
Shape gemm_output_shape(const Gemm& op);

/// int64 arithmetic on extents, at least 0, that throws Error(invalid_argument) naming `pointer` past int64.
class Checked {
 public:
  explicit Checked(std::string pointer) : pointer_(std::move(pointer)) {}
  std::int64_t mul(std::int64_t a, std::int64_t b) const;
  std::int64_t add(std::int64_t a, std::int64_t b) const;
  /// `value` rounded up to a multiple of `unit`.
  std::int64_t round_up(std::int64_t value, std::int64_t unit) const {
    return mul(ceil_div(value, unit), unit);
  }
  static std::int64_t ceil_div(std::int64_t value, std::int64_t unit) {
    return value / unit + (value % unit != 0);
  }
  /// Product of `shape` times the element size; throws as mul does.
  std::int64_t bytes(const std::vector<std::int64_t>& shape, DType dtype) const;

 private:
  std::string pointer_;
};

/// The tensors of a concrete problem whose fields agree: `tensors` without the checks, apart from overflow.
std::vector<TensorDecl> declare(const Problem& problem);

}  // namespace mxjit::problem
