// Quantizations with an operation before them, or the value before quantization as an output, and values for
// them.
#pragma once

#include <cstdint>
#include <vector>

#include "device/problems.hpp"

namespace mxjit::device {

/// What happens before, in every form.
std::vector<problem::Pre> all_pre();
/// The recipes that differ in how bytes move.
std::vector<problem::Recipe> fusion_recipes();
/// Of every combination of `pres`, input, layout and y a recipe, axes and a shape in turn.
std::vector<problem::Problem> fusions(const std::vector<problem::Pre>& pres);

/// Numbers as activations have them: near nothing special, which is where most values lie near a middle.
HostTensor ordinary(DType dtype, const std::vector<std::int64_t>& shape, double deviation, Random& random);

}  // namespace mxjit::device
