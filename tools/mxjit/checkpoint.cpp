#include "mxjit/checkpoint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "mxjit/error.hpp"
#include "mxjit/files.hpp"
#include "problem/json_text.hpp"
#include "safetensors/safetensors.hpp"

namespace mxjit::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

[[noreturn]] void refuse(const fs::path& file, const std::string& why) {
  throw Error(ErrorCode::invalid_argument, fmt::format("\"{}\": {}", file.string(), why), "IN");
}

// Keeps the order of fields, once the text is known to be sound.
Json read_object(const fs::path& file) {
  const std::string text = read_text(file, "IN");
  try {
    if (!problem::read_json(text, "the file").is_object()) refuse(file, "a JSON object is expected");
  } catch (const Error& error) {
    if (error.argument() == "IN") throw;
    refuse(file, error.what());
  }
  return Json::parse(text);
}

// The tensors of each shard as the index says.
std::map<std::string, std::set<std::string>> shards_of(const fs::path& file, const Json& index) {
  const auto map = index.find("weight_map");
  if (map == index.end() || !map->is_object() || map->empty())
    refuse(file, "\"weight_map\": an object of tensor names and their shards is expected");
  std::map<std::string, std::set<std::string>> shards;
  for (const auto& [tensor, shard] : map->items()) {
    if (!shard.is_string())
      refuse(file, fmt::format("\"weight_map\": \"{}\": the name of a shard is expected", tensor));
    const auto& name = shard.get_ref<const std::string&>();
    const bool plain = !name.empty() && name != "." && name != ".." &&
                       name.find_first_of(std::string_view("/\\\0", 3)) == std::string::npos;
    if (!plain || !name.ends_with(".safetensors"))
      refuse(file, fmt::format(
                       "\"weight_map\": \"{}\" lies in \"{}\"; a file NAME.safetensors of the same folder is "
                       "expected",
                       tensor, name));
    shards[name].insert(tensor);
  }
  return shards;
}

// The headers against the index: `where` collects the shard of each tensor that a header has.
void read_headers(Checkpoint& checkpoint) {
  std::map<std::string, std::string> where;
  for (auto& [shard, tensors] : checkpoint.shards) {
    const fs::path file = checkpoint.folder / shard;
    check_input(file, "IN");
    safetensors::File header = safetensors::read_shapes(file);
    for (auto& [name, tensor] : header.tensors) {
      const auto [at, is_new] = where.emplace(name, shard);
      if (!is_new) refuse(file, fmt::format("\"{}\" lies here and in \"{}\"", name, at->second));
      checkpoint.tensors.emplace(name, std::move(tensor));
    }
    if (!checkpoint.index)
      for (const auto& [name, tensor] : header.tensors) tensors.insert(name);
  }
  const fs::path index = checkpoint.folder / index_name;
  for (const auto& [shard, tensors] : checkpoint.shards)
    for (const std::string& name : tensors) {
      const auto at = where.find(name);
      if (at == where.end()) refuse(index, fmt::format("\"{}\" is in none of the shards", name));
      if (at->second != shard)
        refuse(index, fmt::format("\"{}\" lies in \"{}\"; the index says \"{}\"", name, at->second, shard));
    }
  for (const auto& [name, shard] : where)
    if (!checkpoint.shards.at(shard).contains(name))
      refuse(index, fmt::format("\"{}\" of \"{}\" is not in the index", name, shard));
}

// Weights in another form would stand beside the quantized ones and be loaded in their place.
bool holds_weights(const std::string& name) {
  static constexpr std::array<std::string_view, 10> endings = {
      ".safetensors", ".bin", ".pt", ".pth", ".gguf", ".h5", ".msgpack", ".onnx", ".ckpt", ".index.json"};
  return std::any_of(endings.begin(), endings.end(),
                     [&](std::string_view ending) { return name.ends_with(ending); });
}

void list_others(Checkpoint& checkpoint) {
  for (const fs::directory_entry& item : fs::directory_iterator(checkpoint.folder)) {
    const std::string name = item.path().filename().string();
    if (checkpoint.shards.contains(name) || name == index_name || name == config_name) continue;
    std::error_code error;  // a symbolic link that leads nowhere
    const bool copied = item.is_regular_file(error) && !holds_weights(name);
    (copied ? checkpoint.others : checkpoint.left_out).push_back(name);
  }
  std::sort(checkpoint.others.begin(), checkpoint.others.end());
  std::sort(checkpoint.left_out.begin(), checkpoint.left_out.end());
}

}  // namespace

Checkpoint read_checkpoint(const fs::path& folder) {
  Checkpoint checkpoint;
  checkpoint.folder = folder;
  const fs::path index = folder / index_name;
  if (fs::exists(index)) {
    checkpoint.index = read_object(index);
    checkpoint.shards = shards_of(index, *checkpoint.index);
  } else if (fs::exists(folder / single_name)) {
    checkpoint.shards[single_name];
  } else {
    refuse(folder, fmt::format("neither {} nor {} is there", index_name, single_name));
  }
  if (const fs::path config = folder / config_name; fs::exists(config)) {
    checkpoint.config = read_object(config);
    if (const auto at = checkpoint.config->find("quantization_config");
        at != checkpoint.config->end() && !at->is_null())
      refuse(config, "it has a \"quantization_config\": this checkpoint is quantized already");
  }
  read_headers(checkpoint);
  list_others(checkpoint);
  return checkpoint;
}

}  // namespace mxjit::cli
