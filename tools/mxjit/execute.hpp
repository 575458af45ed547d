// Runs a problem where --device says.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cache/cache.hpp"
#include "mxjit/device.hpp"
#include "mxjit/statistics.hpp"
#include "problem/problem.hpp"
#include "safetensors/host_tensor.hpp"

namespace mxjit::cli {

/// Checks the tensors of a concrete problem against what was read: every input there, with its dtype and
/// shape. Throws Error(invalid_argument) that names the tensor. Returns the names of tensors the problem does
/// not read.
std::vector<std::string> check_inputs(const problem::Problem& problem, const TensorMap& tensors);

struct Executed {
  TensorMap outputs;
  std::string device;  // "cpu" or "cuda:N"
};

class Executor {
 public:
  /// Resolves the choice. Throws Error(unavailable) when a GPU is asked for and none is usable.
  Executor(const DeviceChoice& choice, const cache::Options& options);
  ~Executor();

  /// Runs a concrete problem on checked inputs. With --device auto, what no kernel executes runs on the CPU,
  /// and a note says so.
  Executed run(const problem::Problem& problem, const TensorMap& inputs);

  /// Of the kernels, so far; of nothing on the CPU.
  Statistics statistics() const;

 private:
  struct Gpu;
  std::unique_ptr<Gpu> gpu_;  // null: the CPU
};

}  // namespace mxjit::cli
