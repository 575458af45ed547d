// The pad_groups and unpad_groups entries: groups of rows moved to starts that are multiples of an alignment,
// and back.
#pragma once

#include <cstdint>

#include "mxjit/types.hpp"

namespace mxjit {

/// Neither field selects a kernel.
struct PadGroupsOptions {
  std::int32_t groups = 0;     ///< 1 to 1024
  std::int64_t alignment = 0;  ///< rows, at least 1
};

/// The tensors of one pad_groups call, all in memory of the context's device: T rows of D elements, T >= 0, D
/// >= 0, of bf16, fp16, fp32 or one byte. Bases and pitches that are multiples of 16 bytes are fast, others
/// are right. Outputs overlap no other tensor.
struct PadGroupsArgs {
  Tensor x;        ///< (T, D)
  Tensor offsets;  ///< i32 (groups), on the device: ends of the groups, which do not fall and stay in [0, T]
  /// (P, D), x's dtype, P = T + groups * alignment rounded up to a multiple of alignment, below 2^31. Group g
  /// lies in rows starts[g] and on; rows that no row of a group is copied to are zero. Rows of x past the
  /// last end are not copied.
  Tensor x_padded;
  Tensor starts;  ///< i32 (groups), written: the sizes before, each rounded up to a multiple of alignment
  Tensor ends;    ///< i32 (groups), written: starts[g] and the rounded size of group g, new offsets
  /// Optional: i32 (4), on the device, zeroed by the caller. The first fault stays there: {1 falls, 2 leaves
  /// [0, T], 4 a start outside x_padded; group; its end or start; 0}.
  Tensor status{};
};

/// The tensors of one unpad_groups call, as PadGroupsArgs. x is written: (T, D), zero past the last end.
struct UnpadGroupsArgs {
  Tensor x_padded;
  Tensor offsets;
  Tensor starts;  ///< i32 (groups), read: group g lies in rows starts[g] and on of x_padded
  Tensor x;
  Tensor status{};
};

}  // namespace mxjit
