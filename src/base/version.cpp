#include "mxjit/context.hpp"

namespace mxjit {

std::string_view version() { return MXJIT_VERSION; }  // set by the build from the project's version

}  // namespace mxjit
