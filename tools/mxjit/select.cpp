#include "mxjit/select.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fnmatch.h>

#include <algorithm>
#include <array>

namespace mxjit::cli {
namespace {

// In lower case; names are lowered before they are matched.
constexpr std::array<const char*, 9> kept_by_default = {"*embed*",     "*norm*",        "*lm_head*",
                                                        "*router*",    "*.gate.weight", "*wte.weight",
                                                        "*wpe.weight", "*ln_?.weight",  "*ln_f.weight"};

bool matches(const std::string& pattern, const std::string& name) {
  return fnmatch(pattern.c_str(), name.c_str(), FNM_NOESCAPE) == 0;
}

bool matches_any(const std::vector<std::string>& patterns, const std::string& name) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& pattern) { return matches(pattern, name); });
}

std::string lowered(std::string name) {
  for (char& letter : name)
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  return name;
}

}  // namespace

bool is_matrix(const HostTensor& tensor) {
  const bool floating =
      tensor.dtype == DType::bf16 || tensor.dtype == DType::fp16 || tensor.dtype == DType::fp32;
  return floating && (tensor.shape.size() == 2 || tensor.shape.size() == 3) && tensor.elements() > 0;
}

bool chosen_by_default(const std::string& name) {
  const std::string lower = lowered(name);
  if (lower != "weight" && !lower.ends_with(".weight")) return false;
  return std::none_of(kept_by_default.begin(), kept_by_default.end(),
                      [&](const char* pattern) { return matches(pattern, lower); });
}

std::vector<std::string> select_weights(const TensorMap& tensors, const Selection& selection) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors) {
    if (!is_matrix(tensor)) continue;
    const bool wanted =
        selection.include.empty() ? chosen_by_default(name) : matches_any(selection.include, name);
    if (wanted && !matches_any(selection.exclude, name)) names.push_back(name);
  }
  return names;
}

std::string default_choice_text() {
  return fmt::format("every 2D or 3D bf16, fp16 or fp32 tensor named *.weight, but for {} (any case)",
                     fmt::join(kept_by_default, " "));
}

}  // namespace mxjit::cli
