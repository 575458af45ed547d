// How long the loops of tests are.
#pragma once

#include <cstdlib>
#include <string_view>

namespace mxjit::test {

/// Longer loops, asked for with MXJIT_LONG=1.
inline bool long_tests() {
  const char* value = std::getenv("MXJIT_LONG");
  return value != nullptr && std::string_view(value) == "1";
}

/// Each how manieth turn a loop takes whose turns are all of one path: every one, but under a sanitizer,
/// which makes each many times as long and sees what it looks for in a few, every `sanitized`th. The same
/// loop runs whole in builds without one, and under a sanitizer with MXJIT_LONG=1.
inline int stride([[maybe_unused]] int sanitized) {
#ifdef MXJIT_SANITIZED
  return long_tests() ? 1 : sanitized;
#else
  return 1;
#endif
}

}  // namespace mxjit::test
