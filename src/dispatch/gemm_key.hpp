// What selects a plan among the GEMM calls: the traits that select a kernel and the tile, as plain words.
#pragma once

#include <compare>
#include <cstdint>

#include "configure/gemm_tuning.hpp"
#include "dispatch/gemm_check.hpp"
#include "mxjit/gemm.hpp"

namespace mxjit::dispatch {

/// Extents, pitches and factors are values of a launch.
struct GemmKey {
  configure::GemmTraits traits;
  std::uint8_t tile = general;  // index in configure::gemm_tiles

  static constexpr std::uint8_t general = 255;

  using Words = configure::GemmWords;
  Words words() const noexcept;
  friend bool operator==(const GemmKey& a, const GemmKey& b) noexcept { return a.words() == b.words(); }
  friend std::strong_ordering operator<=>(const GemmKey& a, const GemmKey& b) noexcept {
    return a.words() <=> b.words();
  }
  std::uint64_t hash() const noexcept { return hash_words(words()); }
};

/// The traits of a checked call.
configure::GemmTraits gemm_traits(const GemmOptions& options, const GemmArgs& args) noexcept;
/// The kernel that a checked call of `sizes`, none of them 0 but K, gets on a device of `profile`, for which
/// `tuning` was measured. Throws
/// Error(unsupported) for a batch invariant call that the one kernel of its N and K cannot count.
GemmKey gemm_key(const configure::GemmTraits& traits, const GemmSizes& sizes,
                 const configure::Profile& profile, const configure::GemmTuning* tuning = nullptr);
/// The configuration of a key.
configure::Configuration gemm_configuration(const GemmKey& key);

}  // namespace mxjit::dispatch
