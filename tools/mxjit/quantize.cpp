// mxjit quantize: a checkpoint's weight matrices in FP8, the rest copied.
#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <set>

#include "mxjit/command.hpp"
#include "mxjit/device.hpp"
#include "mxjit/error.hpp"
#include "mxjit/execute.hpp"
#include "mxjit/files.hpp"
#include "mxjit/progress.hpp"
#include "mxjit/recipe.hpp"
#include "mxjit/report.hpp"
#include "mxjit/select.hpp"
#include "safetensors/safetensors.hpp"

namespace mxjit::cli {
namespace {

struct QuantizeCommand {
  std::string in, out, recipe;
  Selection selection;
  DeviceChoice device;
};

std::string scale_name(const CheckpointRecipe& recipe, const std::string& weight) {
  return weight + std::string(recipe.scale_suffix);
}

// Quantizes `names` of `file` in place, freeing a weight's memory as soon as its data exist. Returns the
// device.
std::string quantize_weights(safetensors::File& file, const std::vector<std::string>& names,
                             const CheckpointRecipe& recipe, Executor& executor) {
  std::uint64_t total = 0;
  for (const std::string& name : names) total += file.tensors.at(name).bytes.size();
  Progress progress("quantizing", total, Progress::Unit::bytes);
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
  return device;
}

// Modules whose matrices stay as they were: what loaders must not replace by a quantized layer.
std::vector<std::string> kept_modules(const TensorMap& tensors, const std::vector<std::string>& quantized) {
  const std::set<std::string> chosen(quantized.begin(), quantized.end());
  std::vector<std::string> kept;
  constexpr std::string_view suffix = ".weight";
  for (const auto& [name, tensor] : tensors)
    if (is_matrix(tensor) && name.ends_with(suffix) && !chosen.contains(name))
      kept.push_back(name.substr(0, name.size() - suffix.size()));
  return kept;
}

void check_names(const safetensors::File& file, const std::vector<std::string>& names,
                 const CheckpointRecipe& recipe, const QuantizeCommand& options) {
  if (names.empty())
    throw Error(ErrorCode::invalid_argument,
                fmt::format("\"{}\": no tensor to quantize among its {}\nDefault choice: {}.\n--include GLOB "
                            "chooses others.",
                            options.in, file.tensors.size(), default_choice_text()),
                "IN");
  for (const std::string& name : names)
    if (const std::string scale = scale_name(recipe, name); file.tensors.contains(scale))
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("\"{}\": holds \"{}\" already, which is where the scales of \"{}\" go",
                              options.in, scale, name),
                  "IN");
}

int quantize(const QuantizeCommand& options, const CommonOptions& common) {
  const auto start = std::chrono::steady_clock::now();
  const CheckpointRecipe& recipe = checkpoint_recipe(options.recipe);
  check_output(options.out, {options.in});
  safetensors::File file = load_tensors(options.in);
  const std::vector<std::string> names = select_weights(file.tensors, options.selection);
  check_names(file, names, recipe, options);
  const std::vector<std::string> kept = kept_modules(file.tensors, names);
  const std::size_t copied = file.tensors.size() - names.size();
  std::uint64_t bytes_in = 0;
  for (const auto& [name, tensor] : file.tensors) bytes_in += tensor.bytes.size();

  Executor executor(options.device, cache_options(common));
  const std::string device = quantize_weights(file, names, recipe, executor);
  file.metadata["quantization_config"] = quantization_config(recipe, kept).dump();
  std::uint64_t bytes_out = 0;
  for (const auto& [name, tensor] : file.tensors) bytes_out += tensor.bytes.size();
  safetensors::write(options.out, file);

  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (common.json) {
    print_json({{"recipe", recipe.name},
                {"device", device},
                {"quantized", names},
                {"copied", copied},
                {"bytes_in", bytes_in},
                {"bytes_out", bytes_out},
                {"compiled", executor.compiled()},
                {"hits", executor.hits()},
                {"seconds", seconds}});
  } else {
    print(fmt::format("{}: {} weights quantized on {}, {} tensors copied; {} -> {} in {}\n", recipe.name,
                      names.size(), device, copied, human_bytes(static_cast<double>(bytes_in)),
                      human_bytes(static_cast<double>(bytes_out)), human_seconds(seconds)));
  }
  return exit_done;
}

}  // namespace

void add_quantize(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<QuantizeCommand>();
  CLI::App* command = add_command(
      app, invocation, "quantize", "Quantize a checkpoint's weight matrices",
      fmt::format("Each chosen NAME becomes FP8 (E4M3) data under the same name and its scales NAME_scale\n"
                  "(fp8-block128: NAME_scale_inv), the factors that decode by multiplying. Every other "
                  "tensor and the\n"
                  "metadata are copied; \"quantization_config\" is added to the metadata. OUT is published "
                  "whole or not\n"
                  "at all.\n\n"
                  "Recipes (blocks along the last axis, K):\n"
                  "  mxfp8         one E8M0 code for 1 x 32 elements\n"
                  "  mxfp8-32x32   one E8M0 code for 32 x 32\n"
                  "  fp8-row       one float for a row\n"
                  "  fp8-block128  one float for 128 x 128\n"
                  "  fp8-tensor    one float for a tensor\n\n"
                  "Default choice: {}.\n--include replaces it; --exclude takes from either. In a GLOB * "
                  "matches any text, "
                  "dots too.\n\n"
                  "Examples:\n"
                  "  mxjit quantize model.safetensors model-mxfp8.safetensors --recipe mxfp8\n"
                  "  mxjit quantize in.safetensors out.safetensors --recipe mxfp8 --exclude '*.down_proj.*' "
                  "--device cpu",
                  default_choice_text()),
      [options](const CommonOptions& common) { return quantize(*options, common); });
  command->add_option("IN", options->in, "Checkpoint (safetensors file)")->required();
  command->add_option("OUT", options->out, "Where to write the quantized checkpoint")->required();
  command->add_option("--recipe", options->recipe, "How to scale: see below")
      ->required()
      ->type_name("NAME")
      ->check(CLI::IsMember(checkpoint_recipe_names()));
  command->add_option("--include", options->selection.include, "Quantize the matrices of these names instead")
      ->type_name("GLOB")
      ->expected(1)
      ->take_all();
  command->add_option("--exclude", options->selection.exclude, "Leave the tensors of these names as they are")
      ->type_name("GLOB")
      ->expected(1)
      ->take_all();
  add_device_option(*command, options->device);
}

}  // namespace mxjit::cli
