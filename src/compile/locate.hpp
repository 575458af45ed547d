// Where libnvrtc is, and which build of it, without opening it.
#pragma once

#include <string>
#include <vector>

namespace mxjit::compile {

/// Paths and names to open, in order. `path_override` or MXJIT_NVRTC stands alone where given.
std::vector<std::string> nvrtc_candidates(const std::string& path_override);

/// The linker's build id of a library ("" where it has none or cannot be read): equal for equal binaries.
std::string build_id(const std::string& path);

}  // namespace mxjit::compile
