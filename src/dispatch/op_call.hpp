// One call of an op that is one kernel with few choices (dequantize, pack_scales, pad_groups and their
// inverses): what the op itself says, and the way that all of them take from a call to a launch.
#pragma once

#include <array>
#include <bit>
#include <compare>
#include <cstdint>
#include <memory>
#include <span>

#include "base/word_hash.hpp"
#include "configure/configuration.hpp"
#include "dispatch/tensor_check.hpp"
#include "driver/device_context.hpp"
#include "driver/loaded_kernel.hpp"
#include "mxjit/context.hpp"
#include "problem/problem.hpp"

namespace mxjit::dispatch {

/// What selects a kernel among the calls of all these ops: the op first, then its choices.
struct OpKey {
  std::array<std::uint8_t, 16> choices{};

  using Words = std::array<std::uint64_t, 2>;
  Words words() const noexcept { return std::bit_cast<Words>(choices); }
  std::uint64_t hash() const noexcept { return hash_words(words()); }
  friend auto operator<=>(const OpKey& a, const OpKey& b) noexcept { return a.words() <=> b.words(); }
  friend bool operator==(const OpKey& a, const OpKey& b) noexcept { return a.words() == b.words(); }
};

/// The loaded kernel of a key.
struct OpPlan {
  std::shared_ptr<const driver::DeviceContext> device;
  driver::LoadedKernel kernel;

  /// Launches `blocks` thread blocks (at most 2^31 - 1 of them: kernels walk over what is more) with
  /// `params`. Throws Error(driver).
  void launch(std::int64_t blocks, void* params, CUstream stream) const;
  /// As many blocks as fill the device a few times over, where each has something to prepare.
  std::int64_t filling(std::int64_t blocks) const noexcept;
};

struct NamedTensor {
  const char* name;
  const Tensor* tensor;
  bool written = false;
};

class OpCall {
 public:
  /// Checks all that can be checked without looking at device memory. Throws Error(invalid_argument) naming
  /// the argument, what was expected and what came.
  virtual void check() const = 0;
  /// False where no output has a byte. Of a checked call, as all that follows.
  virtual bool has_work() const noexcept = 0;
  virtual OpKey key() const noexcept = 0;
  virtual configure::Configuration configuration() const = 0;  ///< depends on the key alone
  virtual problem::Problem problem() const = 0;
  virtual std::span<const NamedTensor> tensors() const noexcept = 0;
  /// Allocates nothing. Throws Error(driver).
  virtual void launch(const OpPlan& plan, CUstream stream) const = 0;

 protected:
  ~OpCall() = default;
};

/// Launches a checked call that has work. Makes the plan's context current for it if it is not.
void launch(const OpPlan& plan, const OpCall& call, CUstream stream);
/// Checks a call that is `plan`'s, and launches it.
void launch_held(const OpPlan& plan, const OpCall& call, CUstream stream);

/// Checks of pieces that calls share.
void check_group_count(const char* name, std::int32_t count);
/// A vector of what counts rows, and the rows that its values must be able to count.
void check_countable(const char* name, std::int64_t rows);
void check_extents(const char* name, const Tensor& tensor, int least_rank, int most_rank);
/// Refuses a written tensor that shares a byte with another. `spans` in the order of `tensors`; those of
/// absent tensors are empty.
void check_overlaps(std::span<const NamedTensor> tensors, std::span<const Span> spans);

}  // namespace mxjit::dispatch
