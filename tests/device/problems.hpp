// The problems that the device tests run, and values for them.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "problem/problem.hpp"
#include "safetensors/host_tensor.hpp"

namespace mxjit::device {

using Random = std::mt19937_64;

/// Has kernels here, and a reference to compare them with.
bool is_supported(const problem::Problem& problem);

/// Every combination of input, format, rounding, layout, axes and block, on one odd shape, 2D and 3D, each
/// once.
std::vector<problem::Problem> combinations();
/// The recipes whose every shape is worth running: the ones that differ in how bytes move.
std::vector<problem::Problem> shapes();
/// A float scale a row, rows of every kind of length.
std::vector<problem::Problem> row_lengths();
/// Groups along M with every recipe that differs in how bytes move.
std::vector<problem::Problem> groupings();
/// A problem drawn from everything above; extents small and mostly odd.
problem::Problem random_problem(Random& random);

/// Of `problems` those that are supported.
std::vector<problem::Problem> supported(std::vector<problem::Problem> problems);
/// Compiles what they need, on every core, so that the tests that follow find it in the cache.
void prewarm(const std::vector<problem::Problem>& problems);

/// Values for every input: mixed magnitudes, runs of special values, bit patterns around rounding points.
TensorMap make_inputs(const problem::Problem& problem, Random& random);
/// Group ends in a matrix of `rows` rows: some groups empty, mostly a tail.
HostTensor random_offsets(std::int64_t rows, const problem::MGroups& groups, Random& random);
/// A tensor of such values.
HostTensor random_tensor(DType dtype, const std::vector<std::int64_t>& shape, Random& random);

}  // namespace mxjit::device
