#include "cache/options.hpp"

#include <fmt/format.h>

#include <cstdlib>

#include "mxjit/error.hpp"

namespace mxjit::cache {
namespace {

namespace fs = std::filesystem;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

fs::path absolute(const std::string& path) {
  std::error_code error;  // no working folder any more
  const fs::path result = fs::absolute(path, error);
  return error ? fs::path(path) : result;
}

std::optional<fs::path> customary_root() {
  if (const std::string path = environment("MXJIT_CACHE_DIR"); !path.empty()) return absolute(path);
  const fs::path xdg = environment("XDG_CACHE_HOME");
  if (xdg.is_absolute()) return xdg / "mxjit";
  const fs::path home = environment("HOME");
  if (home.is_absolute()) return home / ".cache" / "mxjit";
  return std::nullopt;
}

}  // namespace

Options Options::from_environment() {
  Options options;
  options.root = customary_root();
  const std::string list = environment("MXJIT_BUNDLE_PATH");
  for (std::size_t at = 0; at < list.size();) {
    const std::size_t end = std::min(list.find(':', at), list.size());
    if (end > at) options.layers.push_back(absolute(list.substr(at, end - at)));
    at = end + 1;
  }
  const std::string compile = environment("MXJIT_COMPILE");
  if (!compile.empty() && compile != "forbid" && compile != "allow") {
    throw Error(ErrorCode::invalid_argument,
                fmt::format(R"(MXJIT_COMPILE: expected "forbid" or "allow", got "{}")", compile),
                "MXJIT_COMPILE");
  }
  options.forbid_compile = compile == "forbid";
  options.trust_root = environment("MXJIT_CACHE_TRUST_ROOT") == "1";
  options.nvrtc_path = environment("MXJIT_NVRTC");
  return options;
}

}  // namespace mxjit::cache
