#include "dispatch/trace.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <exception>
#include <filesystem>
#include <map>
#include <utility>

#include "base/log.hpp"

namespace mxjit::dispatch {

std::shared_ptr<Trace> Trace::of_process(const std::string& path) {
  // Leaked: threads that outlive main may still call.
  static auto* mutex = new std::mutex;
  static auto* traces = new std::map<std::string, std::shared_ptr<Trace>>;
  std::error_code error;  // no working folder any more
  const std::filesystem::path absolute = std::filesystem::absolute(path, error);
  const std::string name = error ? path : absolute.string();
  const std::scoped_lock lock(*mutex);
  std::shared_ptr<Trace>& trace = (*traces)[name];
  if (trace == nullptr) trace = std::make_shared<Trace>(host_files(), name);
  return trace;
}

Trace::~Trace() {
  if (fd_ >= 0) files_.close(fd_);
}

void Trace::record(const problem::Problem& problem) {
  std::string failure;
  try {
    const std::string line = problem::print(problem);
    const std::scoped_lock lock(mutex_);
    if (!seen_.insert(sha256(line)).second) return;
    const int error = append(line + "\n");
    if (error == 0 || warned_) return;
    failure = error_text(error);
  } catch (const std::exception& error) {
    failure = error.what();
  }
  {
    const std::scoped_lock lock(mutex_);
    if (std::exchange(warned_, true)) return;
  }
  log(LogLevel::warn, fmt::format("trace \"{}\": could not be written: {}", path_, failure));
}

int Trace::append(std::string line) {
  // O_NONBLOCK: a FIFO that nobody reads is an error instead of a wait.
  if (fd_ < 0) fd_ = files_.open(path_, O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK, 0666);
  if (fd_ < 0) return fd_;
  if (torn_) line.insert(line.begin(), '\n');
  const ssize_t written = files_.write(fd_, line.data(), line.size());
  torn_ = torn_ || (written > 0 && static_cast<std::size_t>(written) < line.size());
  if (written < 0) return static_cast<int>(written);
  if (static_cast<std::size_t>(written) < line.size()) return -ENOSPC;
  torn_ = false;
  return 0;
}

}  // namespace mxjit::dispatch
