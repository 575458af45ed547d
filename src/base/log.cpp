#include "base/log.hpp"

#include <mutex>
#include <utility>

namespace mxjit {
namespace {

struct Sink {
  std::mutex mutex;
  LogSink function;
};

// Leaked: exit handlers of other libraries may still log.
Sink& sink() {
  static Sink* instance = new Sink;
  return *instance;
}

}  // namespace

void set_log_sink(LogSink function) {
  std::scoped_lock lock(sink().mutex);
  sink().function = std::move(function);
}

void log(LogLevel level, std::string_view message) {
  std::scoped_lock lock(sink().mutex);
  if (sink().function) sink().function(level, message);
}

}  // namespace mxjit
