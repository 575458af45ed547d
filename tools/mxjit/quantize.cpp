// mxjit quantize: a checkpoint's weight matrices in FP8, the rest copied.
#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <memory>

#include "mxjit/checkpoint.hpp"
#include "mxjit/files.hpp"
#include "mxjit/quantize_weights.hpp"
#include "mxjit/report.hpp"

namespace mxjit::cli {

QuantizeResult quantize_file(const QuantizeCommand& options, const CommonOptions& common) {
  const auto start = std::chrono::steady_clock::now();
  const CheckpointRecipe& recipe = checkpoint_recipe(options.recipe);
  check_output(options.out, {options.in});
  safetensors::File file = load_tensors(options.in);
  const WeightChoice choice = choose_weights(file.tensors, recipe, options);
  QuantizeResult result{.recipe = options.recipe, .device = {}, .quantized = choice.names};
  result.copied = file.tensors.size() - choice.names.size();
  std::uint64_t total = 0;
  for (const auto& [name, tensor] : file.tensors) result.bytes_in += tensor.bytes.size();
  for (const std::string& name : choice.names) total += file.tensors.at(name).bytes.size();

  Executor executor(options.device, cache_options(common));
  {
    Progress progress("quantizing", total, Progress::Unit::bytes);
    result.device = quantize_weights(file, choice.names, choice.kept, recipe, executor, progress);
  }
  for (const auto& [name, tensor] : file.tensors) result.bytes_out += tensor.bytes.size();
  safetensors::write(options.out, file);

  result.statistics = executor.statistics();
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

namespace {

int quantize(const QuantizeCommand& options, const CommonOptions& common) {
  std::error_code error;
  const bool folder = std::filesystem::is_directory(options.in, error);
  const QuantizeResult result = folder ? quantize_folder(options, common) : quantize_file(options, common);
  if (common.json) {
    print_json({{"recipe", result.recipe},
                {"device", result.device},
                {"quantized", result.quantized},
                {"copied", result.copied},
                {"shards", result.shards},
                {"bytes_in", result.bytes_in},
                {"bytes_out", result.bytes_out},
                {"compiled", result.statistics.compiles},
                {"hits", result.statistics.hits()},
                {"statistics", to_json(result.statistics)},
                {"seconds", result.seconds}});
  } else {
    const std::string shards = folder ? fmt::format(" in {} shards", result.shards) : "";
    print(fmt::format("{}: {} weights quantized on {}, {} tensors copied{}; {} -> {} in {}\n", result.recipe,
                      result.quantized.size(), result.device, result.copied, shards,
                      human_bytes(static_cast<double>(result.bytes_in)),
                      human_bytes(static_cast<double>(result.bytes_out)), human_seconds(result.seconds)));
  }
  return exit_done;
}

}  // namespace

void add_quantize(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<QuantizeCommand>();
  CLI::App* command = add_command(
      app, invocation, "quantize", "Quantize a checkpoint's weight matrices",
      fmt::format(
          "Each chosen NAME becomes FP8 (E4M3) data under the same name and its scales NAME_scale\n"
          "(fp8-block128: NAME_scale_inv), the factors that decode by multiplying. Every other "
          "tensor and the\n"
          "metadata are copied; \"quantization_config\" is added to the metadata. OUT is published "
          "whole or not\n"
          "at all.\n\n"
          "IN may be a folder with {} (or {} alone). OUT is then a new folder: the\n"
          "shards under their names, a new index, {} with \"quantization_config\", and copies of the\n"
          "other files but for weights in other forms.\n\n"
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
          "--device cpu\n"
          "  mxjit quantize Llama-3-8B Llama-3-8B-mxfp8 --recipe mxfp8",
          index_name, single_name, config_name, default_choice_text()),
      [options](const CommonOptions& common) { return quantize(*options, common); });
  command->add_option("IN", options->in, "Checkpoint (a safetensors file, or a folder of them)")->required();
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
