// Measured choices of tiles, which take the place of the cost model's.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "base/word_hash.hpp"
#include "configure/gemm_words.hpp"

namespace mxjit::configure {

/// The problems that one measurement speaks for: of the same traits, N and K, and of as many tile rows,
/// whatever the tile. Batch invariant ones are of any M.
struct GemmClass {
  GemmWords traits{};
  std::int64_t m = 0, n = 0, k = 0;
  friend auto operator<=>(const GemmClass&, const GemmClass&) = default;  // NOLINT(modernize-use-nullptr)
};
GemmClass gemm_class(const GemmTraits& traits, std::int64_t m, std::int64_t n, std::int64_t k) noexcept;

/// The choices for one kind of device. Looked at in every call: immutable once made.
class GemmTuning {
 public:
  /// `tile`: an index in gemm_tiles of the class's traits.
  void set(const GemmClass& of, int tile) { tiles_[of] = tile; }
  std::optional<int> find(const GemmTraits& traits, std::int64_t m, std::int64_t n,
                          std::int64_t k) const noexcept {
    if (tiles_.empty()) return std::nullopt;
    const auto found = tiles_.find(gemm_class(traits, m, n, k));
    return found == tiles_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  struct Hash {
    std::size_t operator()(const GemmClass& of) const noexcept {
      return hash_words<6>({of.traits[0], of.traits[1], of.traits[2], static_cast<std::uint64_t>(of.m),
                            static_cast<std::uint64_t>(of.n), static_cast<std::uint64_t>(of.k)});
    }
  };
  std::unordered_map<GemmClass, int, Hash> tiles_;
};

/// The index in gemm_tiles of the tile that has this name.
std::optional<int> tile_of_name(const GemmTraits& traits, std::string_view name);

}  // namespace mxjit::configure
