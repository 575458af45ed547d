// What the library tells while it works. It prints nothing itself.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "mxjit/export.h"

namespace mxjit {

/// From the most urgent to the most detailed. A level includes those before it.
enum class LogLevel : std::uint8_t {
  error,
  warn,   ///< the work goes on, but something is amiss: a root that cannot be written, an entry set aside
  info,   ///< what was compiled
  debug,  ///< what was found where and loaded
};

/// "error", "warn", "info", "debug".
MXJIT_API std::string_view to_string(LogLevel level);
/// The level of that name. Throws Error(invalid_argument) listing the names.
MXJIT_API LogLevel log_level(std::string_view name);

/// Receives one line, without a newline, valid during the call. It may be called by several threads at once.
/// It may call the library; what the library would log meanwhile in the same thread is dropped. What it
/// throws is dropped.
using LogSink = std::function<void(LogLevel, std::string_view)>;

/// Replaces the process-wide sink by one for lines of `level` and more urgent ones (unset: the level that
/// MXJIT_LOG names, else warn). An empty sink, the default, drops every line. When this returns, the sink of
/// before is called no more and has been destroyed: calls of it in other threads are waited for. From within
/// a sink nothing is waited for. Throws Error(invalid_argument) for another MXJIT_LOG; the sink is then the
/// one of before.
MXJIT_API void set_log_sink(LogSink sink, std::optional<LogLevel> level = {});

}  // namespace mxjit
