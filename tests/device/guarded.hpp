// Tensors in device memory between guard zones, and problems run on them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "dispatch/run.hpp"
#include "driver/device_buffer.hpp"
#include "problem/problem.hpp"
#include "safetensors/host_tensor.hpp"

namespace mxjit::device {

/// How tensors lie in memory.
struct Placement {
  std::int64_t extra_pitch = 0;  // elements between two rows of data (scales are always packed)
  int shift = 0;                 // elements that bases lie past a multiple of 256 bytes
  std::uint8_t dirt = 0xA5;      // what outputs hold before the launch
};

/// A tensor whose buffer holds a known pattern in the 4 KiB before it and after it and between its rows.
/// Under the sanitizer (small()) the buffer ends where the tensor does, so that the sanitizer sees what the
/// pattern cannot: reads.
class Guarded {
 public:
  /// `content` null: an output, filled with dirt.
  Guarded(const problem::TensorDecl& decl, const Placement& placement, const HostTensor* content);

  Tensor tensor() const;
  /// Puts the buffer back to what it held at first; with `content`, with that as the tensor's bytes.
  void restore(const HostTensor* content = nullptr);
  /// The tensor's bytes now. Adds a failure when the pattern or, for an input, its bytes have changed.
  HostTensor read() const;

 private:
  std::size_t row_at(std::int64_t row) const { return begin_ + static_cast<std::size_t>(row) * pitch_bytes_; }
  void place(const HostTensor& content);

  std::string name_;
  HostTensor shape_;  // dtype and extents; no bytes
  bool output_ = false;
  std::int64_t rows_ = 1;
  std::int64_t pitch_ = 0;
  std::size_t row_bytes_ = 0, pitch_bytes_ = 0, begin_ = 0;
  std::vector<std::uint8_t> image_;
  driver::DeviceBuffer buffer_;
};

/// A problem's tensors, guarded, ready to launch again and again.
class GuardedProblem {
 public:
  GuardedProblem(const problem::Problem& problem, const TensorMap& inputs, const Placement& placement = {});

  void launch(Context& context, CUstream stream);
  /// Outputs, once their stream has been synchronized. Checks every guard.
  TensorMap read() const;
  /// Dirties the outputs again.
  void dirty();
  /// Other values for the inputs, in place.
  void refill(const TensorMap& inputs);
  const dispatch::DeviceTensors& tensors() const { return tensors_; }

 private:
  problem::Problem problem_;
  std::map<std::string, Guarded> guarded_;
  std::map<std::string, bool> is_output_;
  dispatch::DeviceTensors tensors_;
};

/// Launches once on the machine's stream and reads the outputs.
TensorMap run_guarded(const problem::Problem& problem, const TensorMap& inputs,
                      const Placement& placement = {});

/// Adds a failure that names the tensor and the first place that differs. Counts a comparison.
void expect_equal(const TensorMap& got, const TensorMap& expected);

/// Runs a problem guarded and compares with the reference.
void expect_reference(const problem::Problem& problem, const TensorMap& inputs,
                      const Placement& placement = {});

/// Problems compared so far, in this process.
std::uint64_t comparisons();

}  // namespace mxjit::device
