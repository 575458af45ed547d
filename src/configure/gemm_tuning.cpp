#include "configure/gemm_tuning.hpp"

#include <span>

namespace mxjit::configure {

GemmClass gemm_class(const GemmTraits& traits, std::int64_t m, std::int64_t n, std::int64_t k) noexcept {
  // Tiles are multiples of 64 rows high. Below that each row that is loaded counts, a few at a time.
  const std::int64_t step = m <= 64 ? 16 : 64;
  return {.traits = words(traits),
          .m = traits.batch_invariant ? 0 : (m + step - 1) / step * step,
          .n = n,
          .k = k};
}

std::optional<int> tile_of_name(const GemmTraits& traits, std::string_view name) {
  const std::span<const GemmTile> tiles = gemm_tiles(traits);
  for (std::size_t i = 0; i < tiles.size(); ++i)
    if (tile_name(tiles[i]) == name) return static_cast<int>(i);
  return std::nullopt;
}

}  // namespace mxjit::configure
