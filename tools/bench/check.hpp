// Outputs of a timed call against the CPU reference.
#pragma once

#include <string>

#include "bench/check_parts.hpp"

namespace mxjit::bench {

/// Compares what `read` gives of the case's outputs with what the reference makes of its inputs, in parts of
/// about `budget` elements together. Runs on all cores; `read` is called by one thread at a time. Returns an
/// empty string, or where the first difference is.
std::string difference_from_reference(const OpCase& one, std::int64_t budget, const ReadRegion& read);

}  // namespace mxjit::bench
