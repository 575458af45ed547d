#include "mxjit/report.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "mxjit/log.hpp"

namespace mxjit::cli {
namespace {

// What cannot be written there (a full disk behind a redirection) is lost; the exit status tells as much.
void print_error(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stderr); }

}  // namespace

int exit_status(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument:
      return exit_bad_usage;
    case ErrorCode::unsupported:
    case ErrorCode::unavailable:
      return exit_part_missing;
    default:
      return exit_failed;
  }
}

void print(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); }

void print_json(const nlohmann::ordered_json& document) {
  print(document.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  print("\n");
}

nlohmann::ordered_json to_json(const Statistics& statistics) {
  nlohmann::ordered_json layers = nlohmann::ordered_json::array();
  for (const Statistics::Layer& layer : statistics.layers)
    layers.push_back({{"path", layer.path}, {"hits", layer.hits}});
  const auto seconds = [](std::chrono::nanoseconds time) {
    return std::chrono::duration<double>(time).count();
  };
  return {{"memory_hits", statistics.memory_hits},
          {"root_hits", statistics.root_hits},
          {"layers", layers},
          {"compiles", statistics.compiles},
          {"compile_failures", statistics.compile_failures},
          {"loads", statistics.loads},
          {"publishes", statistics.publishes},
          {"publish_failures", statistics.publish_failures},
          {"quarantined", statistics.quarantined},
          {"refused", statistics.refused},
          {"evicted", statistics.evicted},
          {"lock_waits", statistics.lock_waits},
          {"lock_failures", statistics.lock_failures},
          {"look_up_seconds", seconds(statistics.look_up_time)},
          {"compile_seconds", seconds(statistics.compile_time)},
          {"publish_seconds", seconds(statistics.publish_time)},
          {"load_seconds", seconds(statistics.load_time)}};
}

void note(std::string_view text) { print_error(fmt::format("mxjit: {}\n", text)); }

void flush_output() {
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
    throw Error(ErrorCode::io,
                fmt::format("the standard output could not be written: {}", std::strerror(errno)));
}

int report_error(std::string_view command, std::string_view code, std::string_view message,
                 std::string_view argument, int status, bool json) {
  print_error(fmt::format("mxjit{}{}: error: {}\n", command.empty() ? "" : " ", command, message));
  if (json) {
    print_json(
        {{"error", {{"code", code}, {"message", message}, {"argument", argument}, {"status", status}}}});
    std::fflush(stdout);
  }
  return status;
}

void log_to_stderr() {
  set_log_sink([](LogLevel level, std::string_view line) {
    print_error(fmt::format("mxjit: {}: {}\n", to_string(level), line));
  });
}

std::string human_bytes(double bytes) {
  static constexpr std::string_view units[] = {"B", "kB", "MB", "GB", "TB"};
  std::size_t unit = 0;
  while (bytes >= 999.5 && unit < 4) {
    bytes /= 1000;
    ++unit;
  }
  if (unit == 0) return fmt::format("{:.0f} B", bytes);
  const int decimals = bytes < 10 ? 2 : bytes < 100 ? 1 : 0;
  return fmt::format("{:.{}f} {}", bytes, decimals, units[unit]);
}

std::string human_seconds(double seconds) {
  if (seconds < 1) return fmt::format("{:.0f} ms", seconds * 1000);
  if (seconds < 60) return fmt::format("{:.1f} s", seconds);
  const long whole = std::lround(seconds);
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole / 60 % 60);
}

}  // namespace mxjit::cli
