// Problems of dequantize, pack_scales, unpack_scales, pad_groups and unpad_groups, and values for them.
#pragma once

#include <cstdint>
#include <vector>

#include "device/problems.hpp"

namespace mxjit::device {

/// Every combination of formats, scales, axis, groups and output on one odd shape, 2D and 3D.
std::vector<problem::Problem> dequantizations();
/// Every place of scales on many shapes.
std::vector<problem::Problem> dequantization_shapes();
/// Both directions of every placement on many shapes.
std::vector<problem::Problem> packs();
/// Both directions, every size of element, many shapes and alignments.
std::vector<problem::Problem> pads();

/// A problem of one of these ops; extents and numbers of groups as of random_quantization.
problem::Problem random_op(Random& random);
/// The same with others; ld and align left to the defaults, which are not filled in.
problem::Problem op_of_other_extents(problem::Problem problem, Random& random);

/// Any bytes as data and codes, ordinary and special factors, and groups of chance, some of them empty, that
/// leave a tail or not.
TensorMap ops_inputs(const problem::Problem& problem, Random& random);

/// Values for a problem of these ops or of quantize.
TensorMap any_inputs(const problem::Problem& problem, Random& random);

/// fp32 NaNs, of which there are many, become one: which of them a product is is left to the chip.
TensorMap with_one_nan(TensorMap tensors);
/// The outputs as they are compared: those of a quantization as they are.
TensorMap comparable(const problem::Problem& problem, TensorMap outputs);

}  // namespace mxjit::device
