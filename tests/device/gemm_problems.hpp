// The GEMM problems that the device tests run, values for them, and how close results must be.
#pragma once

#include <string>
#include <vector>

#include "device/machine.hpp"
#include "device/problems.hpp"

namespace mxjit::device {

class GemmOnDevice : public DeviceTest {};

/// A way to scale an operand, by the words of problem files: "none", "tensor", "row", "k", "128", "128 mn",
/// "128x128", "128x128 mn", "mx32", "mx128", "mx32x32", "mx128x128", each mx one also with " blocked".
std::optional<problem::OperandScaling> scaling(const std::string& name);

problem::Gemm make_gemm(std::int64_t m, std::int64_t n, std::int64_t k, const std::string& a_scaling,
                        const std::string& b_scaling, Accumulation accumulation, DType d = DType::fp32);

std::vector<problem::Problem> problems_of(const std::vector<problem::Gemm>& gemms);

/// Values of a few binades around 1 for every input of the problem; no NaN, no infinity.
TensorMap gemm_inputs(const problem::Problem& problem, Random& random);

double value_of(const HostTensor& tensor, std::size_t index);

/// ||got - expected|| / ||expected||, in double. Infinite where only one of them is NaN.
double relative_error(const HostTensor& got, const HostTensor& expected);
/// What relative_error may be for the problem's output, rounded once, and for its accumulation.
double rounding_tolerance(const problem::Gemm& gemm);
double sum_tolerance(const problem::Gemm& gemm);
/// Both.
double tolerance(const problem::Gemm& gemm);

}  // namespace mxjit::device
