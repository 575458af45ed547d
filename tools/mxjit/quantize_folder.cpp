// A checkpoint in a folder, shard by shard into a new folder.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>

#include "mxjit/checkpoint.hpp"
#include "mxjit/error.hpp"
#include "mxjit/files.hpp"
#include "mxjit/new_folder.hpp"
#include "mxjit/quantize_weights.hpp"
#include "mxjit/report.hpp"

namespace mxjit::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

std::string text_of(const Json& json) { return json.dump(2) + "\n"; }

void copy_whole(const fs::path& from, const fs::path& to) {
  std::string bytes;
  if (const int error = read_file(host_files(), from.string(), bytes, UINT64_MAX); error < 0)
    throw Error(ErrorCode::io, fmt::format("\"{}\" could not be read: {}", from.string(), error_text(error)));
  write_whole(to, bytes);
}

// The index of what was written: every tensor's shard, and the bytes of all.
Json new_index(const Checkpoint& checkpoint, const std::map<std::string, std::string>& where,
               std::uint64_t total_bytes) {
  Json index = *checkpoint.index;
  if (!index.contains("metadata") || !index["metadata"].is_object()) index["metadata"] = Json::object();
  index["metadata"]["total_size"] = total_bytes;
  Json map = Json::object();
  for (const auto& [tensor, shard] : where) map[tensor] = shard;
  index["weight_map"] = std::move(map);
  return index;
}

std::vector<std::string> chosen_of(const std::set<std::string>& shard,
                                   const std::vector<std::string>& names) {
  std::vector<std::string> chosen;
  for (const std::string& name : names)
    if (shard.contains(name)) chosen.push_back(name);
  return chosen;
}

}  // namespace

QuantizeResult quantize_folder(const QuantizeCommand& options, const CommonOptions& common) {
  const auto start = std::chrono::steady_clock::now();
  const CheckpointRecipe& recipe = checkpoint_recipe(options.recipe);
  const fs::path out = check_output_folder(options.out, options.in);
  const Checkpoint checkpoint = read_checkpoint(options.in);
  const WeightChoice choice = choose_weights(checkpoint.tensors, recipe, options);
  QuantizeResult result{.recipe = options.recipe, .device = {}, .quantized = choice.names};
  result.copied = checkpoint.tensors.size() - choice.names.size();
  result.shards = checkpoint.shards.size();
  for (const auto& [name, tensor] : checkpoint.tensors) result.bytes_in += bytes_of(tensor);
  if (!checkpoint.left_out.empty()) note(fmt::format("not copied: {}", fmt::join(checkpoint.left_out, ", ")));

  Executor executor(options.device, cache_options(common));
  NewFolder folder(out);
  std::map<std::string, std::string> where;  // tensor -> shard
  {
    Progress progress("quantizing", result.bytes_in, Progress::Unit::bytes);
    for (const auto& [shard, tensors] : checkpoint.shards) {
      safetensors::File file = load_tensors(checkpoint.folder / shard);
      std::uint64_t copied = 0;
      const std::vector<std::string> names = chosen_of(tensors, choice.names);
      for (const auto& [name, tensor] : file.tensors) copied += tensor.bytes.size();
      for (const std::string& name : names) {
        if (!file.tensors.contains(name))
          throw Error(ErrorCode::io,
                      fmt::format("\"{}\": \"{}\" was there and is gone: the file changed", shard, name));
        copied -= file.tensors.at(name).bytes.size();
      }
      const std::string device = quantize_weights(file, names, choice.kept, recipe, executor, progress);
      if (!device.empty()) result.device = device;
      for (const auto& [name, tensor] : file.tensors) {
        where[name] = shard;
        result.bytes_out += tensor.bytes.size();
      }
      safetensors::write(folder.path() / shard, file);
      progress.advance(copied);
    }
  }
  for (const std::string& name : checkpoint.others)
    copy_whole(checkpoint.folder / name, folder.path() / name);
  if (checkpoint.config) {
    Json config = *checkpoint.config;
    config["quantization_config"] = quantization_config(recipe, choice.kept);
    write_whole(folder.path() / config_name, text_of(config));
  }
  if (checkpoint.index)
    write_whole(folder.path() / index_name, text_of(new_index(checkpoint, where, result.bytes_out)));
  folder.publish();

  result.statistics = executor.statistics();
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

}  // namespace mxjit::cli
