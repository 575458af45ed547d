#include "base/log.hpp"

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "base/immortal.hpp"
#include "mxjit/error.hpp"

namespace mxjit {
namespace {

constexpr std::array<std::string_view, 4> level_names = {"error", "warn", "info", "debug"};

struct Sink {
  LogSink function;
  int calls = 0;  // in progress
};

struct Log {
  std::mutex mutex;  // guards what follows, never held while a sink runs
  std::condition_variable done;
  std::shared_ptr<Sink> sink;
  std::atomic<int> level{-1};  // the most detailed that is wanted; written under the mutex
};

Log& state() {
  static Immortal<Log> instance;
  return *instance;
}

thread_local bool in_sink = false;
thread_local HeldLog* held = nullptr;  // the outermost

LogLevel level_of_environment() {
  const char* value = std::getenv("MXJIT_LOG");
  if (value == nullptr || *value == '\0') return LogLevel::warn;
  try {
    return log_level(value);
  } catch (const Error& error) {
    throw Error(error.code(), std::string("MXJIT_LOG: ") + error.what(), "MXJIT_LOG");
  }
}

}  // namespace

std::string_view to_string(LogLevel level) {
  const auto index = static_cast<std::size_t>(level);
  return index < level_names.size() ? level_names[index] : "unknown";
}

LogLevel log_level(std::string_view name) {
  for (std::size_t i = 0; i < level_names.size(); ++i)
    if (level_names[i] == name) return static_cast<LogLevel>(i);
  throw Error(ErrorCode::invalid_argument,
              "expected error, warn, info or debug, got \"" + std::string(name) + "\"", "level");
}

void set_log_sink(LogSink sink, std::optional<LogLevel> level) {
  std::shared_ptr<Sink> fresh;
  int wanted = -1;
  if (sink) {
    wanted = static_cast<int>(level ? *level : level_of_environment());
    fresh = std::make_shared<Sink>();
    fresh->function = std::move(sink);
  }
  Log& log = state();
  std::unique_lock lock(log.mutex);
  const std::shared_ptr<Sink> old = std::exchange(log.sink, std::move(fresh));
  log.level.store(wanted, std::memory_order_relaxed);
  if (old == nullptr || in_sink) return;
  log.done.wait(lock, [&] { return old->calls == 0; });
  lock.unlock();
  old->function = nullptr;  // here, whoever else still holds the rest
}

bool logs(LogLevel level) noexcept {
  return static_cast<int>(level) <= state().level.load(std::memory_order_relaxed) && !in_sink;
}

namespace {

void deliver(LogLevel level, std::string_view message) noexcept {
  Log& log = state();
  std::shared_ptr<Sink> sink;
  {
    const std::scoped_lock lock(log.mutex);
    if (log.sink == nullptr || static_cast<int>(level) > log.level.load(std::memory_order_relaxed)) return;
    sink = log.sink;
    ++sink->calls;
  }
  in_sink = true;
  try {
    sink->function(level, message);
  } catch (...) {  // a sink's trouble is not the caller's
  }
  in_sink = false;
  const std::scoped_lock lock(log.mutex);
  if (--sink->calls == 0) log.done.notify_all();
}

}  // namespace

void log(LogLevel level, std::string_view message) noexcept {
  if (!logs(level)) return;
  if (held == nullptr) return deliver(level, message);
  try {
    held->lines_.emplace_back(level, message);
  } catch (...) {  // out of memory: the line is lost, the work goes on
  }
}

HeldLog::HeldLog() noexcept : outermost_(held == nullptr) {
  if (outermost_) held = this;
}

HeldLog::~HeldLog() {
  if (!outermost_) return;
  held = nullptr;
  for (const auto& [level, line] : lines_) deliver(level, line);
}

}  // namespace mxjit
