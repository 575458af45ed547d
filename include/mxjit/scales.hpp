// The pack_scales and unpack_scales entries: scale codes between the plain matrix and the blocked layout.
#pragma once

#include <cstdint>

#include "mxjit/types.hpp"

namespace mxjit {

/// Selects the kernel of both entries.
struct PackScalesOptions {
  Placement placement = Placement::dense;
  std::int32_t groups = 0;  ///< 1 to 1024 with m_groups and k_groups, else 0
};

/// The tensors of one call, all in memory of the context's device. R rows of C codes (one byte each), R >= 0,
/// C >= 0. pack_scales reads s and writes every byte of s_blocked, zero where no code lies; unpack_scales
/// reads s_blocked and writes every byte of s, zero where no group owns a code. The output overlaps no other
/// tensor.
struct PackScalesArgs {
  Tensor s;  ///< e8m0 or u8; (R, C), or (E, R, C) with per_expert. A base and pitch that are multiples of 4
             ///< bytes are fast, others are right
  Tensor s_blocked;  ///< e8m0 or u8; 1-D. dense: ceil128(R) * ceil4(C) bytes; per_expert: E times that;
                     ///< m_groups: (R + 128 * groups) * ceil4(C); k_groups: ceil128(R) * (C + 4 * groups)
  Tensor offsets;    ///< i32 (groups), on the device: ends of groups of rows (m_groups) or of columns
                     ///< (k_groups), which do not fall and stay in [0, R] or [0, C]
  Tensor status{};   ///< with groups, optional: i32 (4), on the device, zeroed by the caller. The first fault
                     ///< of offsets stays there: {1 falls, 2 outside; group; its end; 0}
};

}  // namespace mxjit
