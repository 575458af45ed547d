// The kernel descriptor, the source it generates, and the key that names the cubin.
#pragma once

#include <span>
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

/// Canonical JSON: sorted keys, integers, flags and names only, every default written out. A descriptor that
/// could not be read back (a name that is no identifier, a launch bound out of range) is
/// Error(invalid_argument) that names the field.
std::string print(const KernelDescriptor& descriptor);
/// Reads a descriptor, in any order of fields; unknown, repeated or missing fields, wrong types and another
/// schema are Error(invalid_argument) that names the field.
KernelDescriptor parse_descriptor(std::string_view json);

/// Symbol of the kernel in its cubin: "mxjit_" and the template's name with '/' as '_'.
std::string symbol(const KernelDescriptor& descriptor);

/// The translation unit: includes one template and gives it a constexpr Config. Depends on the descriptor
/// alone. What it expects of the template "quantize/mx_dual", file "quantize/mx_dual.cuh":
///     namespace mxjit {
///     struct QuantizeMxDual {
///       using Params = ...;  // the kernel's only parameter
///       template <class Config> static __device__ void run(const Params& params);
///       // and, if it wants to, the same of the name `prepare`: see launch/entry.cuh
///     };
///     }
/// Config holds every constant of the configuration (integers, flags, and enumerators named as seen from
/// namespace mxjit, such as "Rounding::rceil"), and threads, shared_bytes and cluster.
std::string generate_source(const KernelDescriptor& descriptor);

/// NVRTC options that change the cubin, in order, without include paths.
std::vector<std::string> compile_options(const KernelDescriptor& descriptor);

/// A template of kernels/ embedded in the library: include name ("quantize/mx_dual.cuh") and text.
struct Template {
  std::string_view name;
  std::string_view text;
};
/// Every embedded template, sorted by name.
std::span<const Template> templates();
/// SHA-256 over names and texts, in order.
Digest digest_of(const std::vector<Template>& templates);
/// digest_of(templates()), computed once.
const Digest& templates_digest();

/// SHA-256 over format version, descriptor, source, templates digest, options and target. Known without a
/// compiler; no path, time, environment, host or user has a part in it.
Digest key(const KernelDescriptor& descriptor);
/// The same under another set of templates.
Digest key(const KernelDescriptor& descriptor, const Digest& templates);

}  // namespace mxjit::codegen
