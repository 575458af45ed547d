// The kernel descriptor, the source it generates, and the key that names the cubin.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/sha256.hpp"
#include "configure/configuration.hpp"

namespace mxjit::codegen {

inline constexpr int descriptor_schema = 1;
inline constexpr int key_format = 1;

/// What names one kernel exactly.
struct KernelDescriptor {
  configure::Configuration configuration;
  std::string target;  // "sm_90a", with its a/f suffix
  friend auto operator<=>(const KernelDescriptor&, const KernelDescriptor&) = default;
};

/// Canonical JSON: sorted keys, integers, flags and names only, every default written out.
std::string print(const KernelDescriptor& descriptor);
/// Reads the canonical form; unknown or missing fields and another schema are Error(invalid_argument).
KernelDescriptor parse_descriptor(std::string_view json);

/// Symbol of the kernel in its cubin: "mxjit_" and the template's name with '/' as '_'.
std::string symbol(const KernelDescriptor& descriptor);

/// The translation unit: names one template and gives it a constexpr Config. Depends on the descriptor alone.
std::string generate_source(const KernelDescriptor& descriptor);

/// NVRTC options that change the cubin, in order, without include paths.
std::vector<std::string> compile_options(const KernelDescriptor& descriptor);

/// A template of kernels/ embedded in the library: include name ("quantize/mx_dual.cuh") and text.
struct Template {
  std::string_view name;
  std::string_view text;
};
/// Every embedded template, sorted by name.
const std::vector<Template>& templates();
/// SHA-256 over the names and texts of all embedded templates.
const Digest& templates_digest();

/// SHA-256 over format version, descriptor, source, templates digest, options and target. Known without a
/// compiler.
Digest key(const KernelDescriptor& descriptor);

}  // namespace mxjit::codegen
