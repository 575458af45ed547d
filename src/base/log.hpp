// Logging, the library's side: lines to the sink of mxjit/log.hpp. Never on the launch path.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "mxjit/log.hpp"

namespace mxjit {

/// Thread-safe; holds no lock while the sink runs.
void log(LogLevel level, std::string_view message) noexcept;
/// Whether a line of `level` reaches a sink: whether its text is worth making.
bool logs(LogLevel level) noexcept;

/// While one lives, the lines that this thread logs wait; the end of the outermost hands them to the sink.
/// For work that other calls wait for: a sink may call the library, and must not come to wait for its own
/// thread.
class HeldLog {
 public:
  HeldLog() noexcept;
  ~HeldLog();
  HeldLog(const HeldLog&) = delete;
  HeldLog& operator=(const HeldLog&) = delete;

 private:
  friend void log(LogLevel level, std::string_view message) noexcept;
  bool outermost_;
  std::vector<std::pair<LogLevel, std::string>> lines_;
};

}  // namespace mxjit
