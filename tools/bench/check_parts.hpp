// A timed call cut into parts that the reference computes by themselves: rows, or columns where those depend
// on each other.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "bench/op_case.hpp"

namespace mxjit::bench {

/// Bytes of a tensor: `rows` spans of `width`, `pitch` apart.
struct Region {
  std::int64_t offset = 0;
  std::int64_t rows = 1;
  std::int64_t width = 0;
  std::int64_t pitch = 0;
  std::int64_t bytes() const { return rows * width; }
};

/// Those bytes of a whole tensor in host memory.
std::vector<std::uint8_t> packed(const std::vector<std::uint8_t>& tensor, const Region& region);

/// Bytes of a region of one of the case's tensors, packed.
using ReadRegion = std::function<std::vector<std::uint8_t>(const std::string& tensor, const Region& region)>;

/// A smaller problem and where its tensors lie in those of the whole.
struct Part {
  problem::Problem problem;
  std::map<std::string, Region> inputs;
  std::map<std::string, Region> outputs;  // packed, or the first bytes of them
  /// Integer inputs, which the case brings.
  std::map<std::string, std::vector<std::int32_t>> words;
  /// Bytes after those of `x`: a row that holds what the rest of the tensor has to say.
  std::vector<std::uint8_t> last_row;
};

struct Parts {
  std::vector<Part> parts;
  /// What no part owns and must be zero.
  std::vector<std::pair<std::string, Region>> zeros;
};

/// Rows of a part: a row of blocked-scale tiles, and a multiple of every block extent.
inline constexpr std::int64_t check_rows = 128;

/// All of a case where that is at most `budget` elements, else the first part, the last and evenly spaced
/// ones between, at least two. `read` is asked for what a part cannot know of the rest. Throws
/// Error(unsupported) for a case that cannot be cut and is larger.
Parts parts_of(const OpCase& one, std::int64_t budget, const ReadRegion& read);

/// Which of `total` parts of `elements` each to check.
std::vector<std::int64_t> spread(std::int64_t total, std::int64_t elements, std::int64_t budget);

}  // namespace mxjit::bench
