// Recording the problems that a process asks for, for a later prewarm or load.
#pragma once

#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "base/file_system.hpp"
#include "base/sha256.hpp"
#include "problem/problem.hpp"

namespace mxjit::dispatch {

/// Appends each distinct problem once to a file. Several processes may append to one: a line is one write.
/// Thread-safe; never throws for what happens on the disk: the first failure is a warning.
class Trace {
 public:
  /// Opens nothing before the first problem.
  Trace(FileSystem& files, std::string path) : files_(files), path_(std::move(path)) {}
  ~Trace();
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  /// The process's own for `path`: contexts share it, so that a problem stands there once.
  static std::shared_ptr<Trace> of_process(const std::string& path);

  void record(const problem::Problem& problem);

 private:
  int append(std::string line);  // 0 or -errno

  FileSystem& files_;
  const std::string path_;
  std::mutex mutex_;  // guards what follows
  std::set<Digest> seen_;
  int fd_ = -1;
  bool torn_ = false;  // the last line was cut short
  bool warned_ = false;
};

}  // namespace mxjit::dispatch
