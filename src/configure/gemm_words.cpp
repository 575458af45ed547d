#include "configure/gemm_words.hpp"

namespace mxjit::configure {
namespace {

std::uint64_t word(const GemmTraits::Operand& operand) noexcept {
  return static_cast<std::uint64_t>(operand.dtype) | static_cast<std::uint64_t>(operand.form) << 8 |
         std::uint64_t{operand.block_rows} << 16 | std::uint64_t{operand.block_cols} << 24 |
         (operand.mn_major ? std::uint64_t{1} << 32 : 0);
}

// 16 bits; 0: none.
std::uint64_t word(const std::optional<GemmTraits::Requant>& requant) noexcept {
  if (!requant) return 0;
  return 1U | static_cast<std::uint64_t>(requant->scaling) << 1 |
         static_cast<std::uint64_t>(requant->rounding) << 2 |
         static_cast<std::uint64_t>(requant->layout) << 8;
}

}  // namespace

GemmWords words(const GemmTraits& traits) noexcept {
  const std::uint64_t flags = (traits.beta ? 1U : 0U) | (traits.bulk_loads ? 2U : 0U) |
                              (traits.bulk_store ? 4U : 0U) | (traits.amax ? 8U : 0U) |
                              (traits.batch_invariant ? 16U : 0U);
  return {word(traits.a), word(traits.b),
          static_cast<std::uint64_t>(traits.d) | std::uint64_t{traits.bias} << 8 |
              static_cast<std::uint64_t>(traits.accumulation) << 16 | flags << 24 |
              static_cast<std::uint64_t>(traits.epilogue) << 40 | word(traits.requant) << 48};
}

}  // namespace mxjit::configure
