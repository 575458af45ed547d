// Whether the outputs of a GEMM are as close to the reference's as sums of other orders and widths are.
#pragma once

#include <string>

#include "device/gemm_problems.hpp"
#include "device/guarded.hpp"

namespace mxjit::device {

/// What is wrong with `got` where `want` is right, or an empty string. NaN and, of d, infinities must be
/// where they are in `want`; a sum may be off by sum_tolerance() of what a sum of these products is like,
/// however much of it cancels.
std::string gemm_difference(const problem::Gemm& gemm, const TensorMap& inputs, const TensorMap& got,
                            const TensorMap& want);

/// Runs the problem guarded and expects no difference from the reference.
void expect_outputs(const problem::Gemm& gemm, const TensorMap& inputs, const Placement& placement = {});

/// Where d_scale may be one or one a row: one a row.
void scale_rows(const problem::Gemm& gemm, TensorMap& inputs, Random& random);

}  // namespace mxjit::device
