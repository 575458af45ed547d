// The problems that the device tests run, and values for them.
#pragma once

#include <array>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "codegen/descriptor.hpp"
#include "problem/problem.hpp"
#include "safetensors/host_tensor.hpp"

namespace mxjit::device {

using Random = std::mt19937_64;

/// The problem of an op, every default written out.
problem::Problem whole(decltype(problem::Problem::op) op);
/// Of fields that agree: blocks that a group's end would cut are not.
bool is_valid(const problem::Problem& problem);
/// A quantization of bf16 with a float scale a row; no shape yet.
problem::Quantize float_rows();
/// Has kernels here, and a reference to compare them with.
bool is_supported(const problem::Problem& problem);

inline constexpr std::array input_types = {DType::bf16, DType::fp16, DType::fp32};
inline constexpr std::array axes_choices = {Axes{true, false}, Axes{false, true}, Axes{true, true}};

/// Every combination of input, format, rounding, layout, axes and block, on one odd shape, 2D and 3D, each
/// once.
std::vector<problem::Problem> combinations();
/// The recipes whose every shape is worth running: the ones that differ in how bytes move.
std::vector<problem::Problem> shapes();
/// A float scale a row, rows of every kind of length.
std::vector<problem::Problem> row_lengths();
/// Groups along M with every recipe that differs in how bytes move.
std::vector<problem::Problem> groupings();
/// A quantization drawn from everything above; extents small and mostly odd, any number of groups.
problem::Problem random_quantization(Random& random);
/// The same quantization of another shape, with another number of groups and another cap.
problem::Problem with_other_extents(const problem::Problem& like, Random& random);
/// Small, mostly odd; 0 now and then, multiples of 32 and 128 more often than by chance.
std::int64_t random_extent(Random& random);

/// Of `problems` those that are supported.
std::vector<problem::Problem> supported(std::vector<problem::Problem> problems);
/// Every `stride`-th of them when sizes are to be small, else all.
std::vector<problem::Problem> thinned(const std::vector<problem::Problem>& problems, std::size_t stride);
/// Compiles what they need, on every core, so that the tests that follow find it in the cache.
void prewarm(const std::vector<problem::Problem>& problems);
void prewarm_kernels(const std::vector<codegen::KernelDescriptor>& kernels);

/// Of [0, bound).
template <typename Integer>
Integer below(Random& random, Integer bound) {
  return static_cast<Integer>(random() % static_cast<std::uint64_t>(bound));
}
/// Values for every input: mixed magnitudes, runs of special values, bit patterns around rounding points.
TensorMap make_inputs(const problem::Problem& problem, Random& random);
/// Ends of `count` groups in [0, limit], sizes multiples of `alignment`: some empty, a tail or none, at times
/// nothing but tail.
std::vector<std::int32_t> random_ends(std::int64_t count, std::int64_t limit, std::int64_t alignment,
                                      Random& random);
HostTensor words(const std::vector<std::int32_t>& values);
/// A tensor of such values, or of finite ones near 1 that are all alike.
HostTensor random_tensor(DType dtype, const std::vector<std::int64_t>& shape, Random& random,
                         bool alike = false);

}  // namespace mxjit::device
