#include "mxjit/quantize_weights.hpp"

#include <fmt/format.h>

#include <set>
#include <utility>

#include "mxjit/error.hpp"

namespace mxjit::cli {
namespace {

// What loaders must not replace by a quantized layer.
std::vector<std::string> kept_modules(const TensorMap& tensors, const std::vector<std::string>& quantized) {
  const std::set<std::string> chosen(quantized.begin(), quantized.end());
  std::vector<std::string> kept;
  constexpr std::string_view suffix = ".weight";
  for (const auto& [name, tensor] : tensors)
    if (is_matrix(tensor) && name.ends_with(suffix) && !chosen.contains(name))
      kept.push_back(name.substr(0, name.size() - suffix.size()));
  return kept;
}

}  // namespace

std::string scale_name(const CheckpointRecipe& recipe, const std::string& weight) {
  return weight + std::string(recipe.scale_suffix);
}

std::uint64_t bytes_of(const HostTensor& tensor) {
  return static_cast<std::uint64_t>(tensor.elements()) * size_of(tensor.dtype);
}

WeightChoice choose_weights(const TensorMap& tensors, const CheckpointRecipe& recipe,
                            const QuantizeCommand& options) {
  WeightChoice choice;
  choice.names = select_weights(tensors, options.selection);
  if (choice.names.empty())
    throw Error(ErrorCode::invalid_argument,
                fmt::format("\"{}\": no tensor to quantize among its {}\nDefault choice: {}.\n--include GLOB "
                            "chooses others.",
                            options.in, tensors.size(), default_choice_text()),
                "IN");
  for (const std::string& name : choice.names)
    if (const std::string scale = scale_name(recipe, name); tensors.contains(scale))
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("\"{}\": holds \"{}\" already, which is where the scales of \"{}\" go",
                              options.in, scale, name),
                  "IN");
  choice.kept = kept_modules(tensors, choice.names);
  return choice;
}

std::string quantize_weights(safetensors::File& file, const std::vector<std::string>& names,
                             const std::vector<std::string>& kept, const CheckpointRecipe& recipe,
                             Executor& executor, Progress& progress) {
  std::string device;
  for (const std::string& name : names) {
    TensorMap inputs;
    HostTensor& weight = inputs["x"] = std::move(file.tensors.at(name));
    try {
      Executed executed = executor.run(weight_problem(recipe, weight), inputs);
      HostTensor& scales = executed.outputs.at("s_row");
      scales.shape = checkpoint_scale_shape(recipe, std::move(scales.shape));
      file.tensors[scale_name(recipe, name)] = std::move(scales);
      file.tensors[name] = std::move(executed.outputs.at("q_row"));
      device = executed.device;
    } catch (const Error& error) {
      throw Error(error.code(), fmt::format("{}: {}", name, error.what()), name);
    }
    progress.advance(weight.bytes.size());
  }
  file.metadata["quantization_config"] = quantization_config(recipe, kept).dump();
  return device;
}

}  // namespace mxjit::cli
