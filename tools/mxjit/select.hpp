// Which tensors of a checkpoint `mxjit quantize` quantizes.
#pragma once

#include <string>
#include <vector>

#include "safetensors/host_tensor.hpp"

namespace mxjit::cli {

/// Glob patterns over tensor names: * matches any text (dots included), ? one character, [...] a set.
struct Selection {
  std::vector<std::string> include;  // when given, replaces the default choice
  std::vector<std::string> exclude;  // taken from either
};

/// A bf16, fp16 or fp32 tensor of rank 2 or 3 without a zero extent.
bool is_matrix(const HostTensor& tensor);

/// Default choice: matrices named "*.weight", except embeddings, norms, routers and the output head, which
/// checkpoints customarily keep in high precision.
bool chosen_by_default(const std::string& name);

/// Names of the tensors to quantize, sorted.
std::vector<std::string> select_weights(const TensorMap& tensors, const Selection& selection);

/// Help text of the default choice.
std::string default_choice_text();

}  // namespace mxjit::cli
