// The weights of a checkpoint quantized: what one file and a folder of them share.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "mxjit/command.hpp"
#include "mxjit/device.hpp"
#include "mxjit/execute.hpp"
#include "mxjit/progress.hpp"
#include "mxjit/recipe.hpp"
#include "mxjit/select.hpp"
#include "safetensors/safetensors.hpp"

namespace mxjit::cli {

struct QuantizeCommand {
  std::string in, out, recipe;
  Selection selection;
  DeviceChoice device;
};

/// What is done with the tensors of a checkpoint, from their names and shapes.
struct WeightChoice {
  std::vector<std::string> names;  // to quantize, sorted
  std::vector<std::string> kept;   // modules whose matrices stay as they were
};

/// Throws Error(invalid_argument) where nothing is chosen, or where scales would take the name of a tensor.
WeightChoice choose_weights(const TensorMap& tensors, const CheckpointRecipe& recipe,
                            const QuantizeCommand& options);

std::string scale_name(const CheckpointRecipe& recipe, const std::string& weight);

/// Bytes of a tensor that may have been read without its data.
std::uint64_t bytes_of(const HostTensor& tensor);

/// Quantizes `names` of `file` in place, freeing a weight's memory as soon as its data exist, and adds
/// "quantization_config" to its metadata. Returns the device.
std::string quantize_weights(safetensors::File& file, const std::vector<std::string>& names,
                             const std::vector<std::string>& kept, const CheckpointRecipe& recipe,
                             Executor& executor, Progress& progress);

/// What the command reports.
struct QuantizeResult {
  std::string recipe, device;
  std::vector<std::string> quantized;
  std::size_t copied = 0, shards = 1;
  std::uint64_t bytes_in = 0, bytes_out = 0;
  Statistics statistics{};
  double seconds = 0;
};

QuantizeResult quantize_file(const QuantizeCommand& options, const CommonOptions& common);
QuantizeResult quantize_folder(const QuantizeCommand& options, const CommonOptions& common);

}  // namespace mxjit::cli
