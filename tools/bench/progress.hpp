// One line on stderr that says what is measured now; nothing when stderr is no terminal.
#pragma once

#include <unistd.h>

#include <cstdio>
#include <string>

namespace mxjit::bench {

/// Replaces the line; an empty text wipes it.
inline void show_progress(const std::string& text) {
  if (isatty(STDERR_FILENO) == 0) return;
  std::fprintf(stderr, "\r\033[K%s", text.c_str());
  std::fflush(stderr);
}

}  // namespace mxjit::bench
