// Logging: a level from MXJIT_LOG, lines to a callback; the library itself prints nothing.
#pragma once

#include <functional>
#include <string_view>

namespace mxjit {

enum class LogLevel { error, warn, info, debug };

using LogSink = std::function<void(LogLevel, std::string_view)>;

/// Replaces the process-wide sink; an empty one (the default) drops every line.
void set_log_sink(LogSink sink);
/// Thread-safe; does nothing when no sink is set.
void log(LogLevel level, std::string_view message);

}  // namespace mxjit
