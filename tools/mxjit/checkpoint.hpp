// A checkpoint in a folder, as Hugging Face lays it out: shards, an index of their tensors, a configuration,
// a tokenizer and whatever else lies there.
#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "safetensors/host_tensor.hpp"

namespace mxjit::cli {

inline constexpr const char* index_name = "model.safetensors.index.json";
inline constexpr const char* single_name = "model.safetensors";
inline constexpr const char* config_name = "config.json";

struct Checkpoint {
  std::filesystem::path folder;
  std::map<std::string, std::set<std::string>> shards;  // file name -> names of its tensors
  TensorMap tensors;                                    // of all shards, without bytes
  std::optional<nlohmann::ordered_json> index;          // none: model.safetensors is the only shard
  std::optional<nlohmann::ordered_json> config;
  std::vector<std::string> others;    // regular files to copy
  std::vector<std::string> left_out;  // other weights, folders, and what is no regular file
};

/// Reads index, configuration and the shards' headers. Throws Error(invalid_argument) naming the file and the
/// fault: no checkpoint there, an index that is no JSON or has no weight_map or names a tensor twice, a shard
/// that is no plain file name or missing, a tensor that lies in another shard than the index says, in two, or
/// in none.
Checkpoint read_checkpoint(const std::filesystem::path& folder);

}  // namespace mxjit::cli
