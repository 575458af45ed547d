// Why a kernel is, or is not, in the cache.
#include <fmt/format.h>

#include "cache/state.hpp"
#include "mxjit/error.hpp"

namespace mxjit::cache {
namespace {

using codegen::KernelDescriptor;
using configure::Configuration;

std::vector<std::string> differences(const KernelDescriptor& asked, const KernelDescriptor& other) {
  const Configuration &a = asked.configuration, &b = other.configuration;
  std::vector<std::string> fields;
  const auto compare = [&](const char* name, const auto& x, const auto& y) {
    if (x != y) fields.emplace_back(name);
  };
  compare("target", asked.target, other.target);
  compare("threads", a.threads, b.threads);
  compare("min_blocks", a.min_blocks, b.min_blocks);
  compare("shared_bytes", a.shared_bytes, b.shared_bytes);
  compare("cluster", a.cluster, b.cluster);
  for (const auto& [name, value] : a.constants) {
    const auto found = b.constants.find(name);
    if (found == b.constants.end() || found->second != value) fields.push_back(name);
  }
  for (const auto& [name, value] : b.constants) {
    if (!a.constants.contains(name)) fields.push_back(name);
  }
  return fields;
}

struct Nearest {
  std::string key, layer, build;
  std::vector<std::string> differs;
  std::pair<std::size_t, std::size_t> distance;  // fields of the descriptor, then all
};

// What a POSIX shell reads back as `text`.
std::string shell_word(std::string_view text) {
  std::string word = "'";
  for (const char c : text) {
    if (c == '\'') {
      word += "'\\''";
    } else {
      word += c;
    }
  }
  return word + "'";
}

}  // namespace

Explanation Cache::State::explain(const KernelDescriptor& descriptor) {
  const Digest key = codegen::key(descriptor);
  Explanation told;
  told.key = to_hex(key);
  const auto hit = [&](const Entry& entry, const std::string& layer) {
    told.hit = true;
    told.layer = layer;
    told.build = entry.build;
    told.reason = fmt::format("found in {}, built by NVRTC {}", layer, entry.build);
    return told;
  };
  if (const auto entry = find_in_memory(key)) return hit(*entry, "memory");
  std::vector<Bad> bad;
  if (root && root->exists()) {
    if (const auto entry = root->store().find(wanted(key, true), bad)) return hit(*entry, root->path());
  }
  for (const auto& layer : layers()) {
    if (const auto entry = layer->find(wanted(key, false), bad)) return hit(*entry, layer->name());
  }

  std::optional<Nearest> nearest;
  std::vector<Bad> unreadable;  // of other kernels: not what was asked for
  const auto consider = [&](const Entry& entry, const std::string& layer) {
    const KernelDescriptor other = codegen::parse_descriptor(entry.descriptor);
    if (other.configuration.kernel != descriptor.configuration.kernel) return;
    std::vector<std::string> differs = differences(descriptor, other);
    const std::size_t fields = differs.size();
    if (entry.templates != codegen::templates_digest()) differs.emplace_back("templates");
    if (differs.empty()) differs.emplace_back("build");
    // The same kernel from other templates is nearer than another kernel.
    const std::pair distance(fields, differs.size());
    if (nearest && nearest->distance <= distance) return;
    nearest = Nearest{to_hex(entry.key), layer, entry.build, std::move(differs), distance};
  };
  if (root && root->exists()) {
    root->store().each(
        false, [&](const Entry& entry, std::uint64_t) { consider(entry, root->path()); }, unreadable);
  }
  for (const auto& layer : layers()) {
    layer->each(
        false, [&](const Entry& entry, std::uint64_t) { consider(entry, layer->name()); }, unreadable);
  }
  if (nearest) {
    told.nearest_key = nearest->key;
    told.nearest_layer = nearest->layer;
    told.differs = nearest->differs;
  }
  if (!bad.empty()) {
    told.reason = fmt::format("{} was refused: {}", bad.front().path, bad.front().reason);
  } else if (nearest && nearest->differs == std::vector<std::string>{"build"}) {
    told.reason = fmt::format("{} holds this kernel built by NVRTC {}, and NVRTC here is of another build",
                              nearest->layer, nearest->build);
  } else if (nearest) {
    told.reason = fmt::format("no layer holds it; the nearest entry, in {}, differs in {}", nearest->layer,
                              fmt::join(nearest->differs, ", "));
  } else if (!root && options.layers.empty()) {
    told.reason = "there is no cache directory and no bundle";
  } else {
    told.reason = fmt::format("no layer holds an entry of the template {}", descriptor.configuration.kernel);
  }
  return told;
}

std::string Cache::State::missing(const KernelDescriptor& descriptor, std::string_view problem) {
  const Explanation told = explain(descriptor);
  std::string searched = root ? root->path() : "no root";
  for (const auto& layer : layers()) searched += ", " + layer->name();
  std::string line = "mxjit prewarm --problems ";
  line += problem.empty() ? "PROBLEM.json" : "/dev/stdin";
  line += " --arch " + descriptor.target;
  if (root) line += " --cache " + shell_word(root->path());
  if (!problem.empty()) line += " <<< " + shell_word(problem);
  std::string nearest = "none of this template";
  if (!told.nearest_key.empty()) {
    nearest = fmt::format("{} in {}, which differs in {}", told.nearest_key, told.nearest_layer,
                          fmt::join(told.differs, ", "));
  }
  return fmt::format(
      "no entry for {} and compiling is forbidden: {}\n"
      "problem: {}\n"
      "kernel: {}\n"
      "key: {}\n"
      "searched: {}\n"
      "nearest entry: {}\n"
      "to add it, where NVRTC is: {}",
      descriptor.target, told.reason, problem.empty() ? "(not given)" : problem, codegen::print(descriptor),
      told.key, searched, nearest, line);
}

}  // namespace mxjit::cache
