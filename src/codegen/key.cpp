#include <fmt/format.h>

#include "codegen/descriptor.hpp"

namespace mxjit::codegen {
namespace {

std::string_view bytes_of(const Digest& digest) {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

}  // namespace

Digest digest_of(const std::vector<Template>& templates) {
  Sha256 hash;
  for (const Template& file : templates) {
    hash.part(file.name);
    hash.part(file.text);
  }
  return hash.finish();
}

const Digest& templates_digest() {
  static const Digest digest = digest_of({templates().begin(), templates().end()});
  return digest;
}

Digest key(const KernelDescriptor& descriptor) { return key(descriptor, templates_digest()); }

Digest key(const KernelDescriptor& descriptor, const Digest& templates) {
  const std::vector<std::string> options = compile_options(descriptor);
  Sha256 hash;
  hash.part(fmt::format("mxjit key {}", key_format));
  hash.part(print(descriptor));
  hash.part(generate_source(descriptor));
  hash.part(bytes_of(templates));
  hash.part(fmt::format("{}", options.size()));  // how many parts follow is part of the key
  for (const std::string& option : options) hash.part(option);
  hash.part(descriptor.target);
  return hash.finish();
}

}  // namespace mxjit::codegen
