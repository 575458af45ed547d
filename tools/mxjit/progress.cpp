#include "mxjit/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

#include "mxjit/report.hpp"

namespace mxjit::cli {
namespace {

constexpr auto first_after = std::chrono::seconds(1);
constexpr auto redraw_every = std::chrono::milliseconds(100);

std::string amount(double value, Progress::Unit unit) {
  return unit == Progress::Unit::bytes ? human_bytes(value) : fmt::format("{:.0f}", value);
}

}  // namespace

Progress::Progress(std::string label, std::uint64_t total, Unit unit)
    : label_(std::move(label)), total_(total), unit_(unit), terminal_(isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() {
  if (visible_) fmt::print(stderr, "\r\x1b[K");
}

void Progress::advance(std::uint64_t amount_done) {
  std::scoped_lock lock(mutex_);
  done_ += amount_done;
  if (!terminal_) return;
  const auto now = Clock::now();
  if (now - start_ < first_after || now - drawn_ < redraw_every) return;
  draw(now);
}

void Progress::draw(Clock::time_point now) {
  drawn_ = now;
  visible_ = true;
  const double elapsed = std::chrono::duration<double>(now - start_).count();
  const double rate = static_cast<double>(done_) / elapsed;
  const double remaining = done_ == 0 ? 0 : static_cast<double>(total_ - done_) / rate;
  const std::string speed = unit_ == Unit::bytes ? human_bytes(rate) + "/s" : fmt::format("{:.1f}/s", rate);
  fmt::print(stderr, "\r\x1b[K{}: {} of {}, {}, {} left", label_, amount(static_cast<double>(done_), unit_),
             amount(static_cast<double>(total_), unit_), speed, human_seconds(remaining));
  std::fflush(stderr);
}

}  // namespace mxjit::cli
