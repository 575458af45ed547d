#include "dispatch/gemm_key.hpp"

#include <fmt/format.h>

#include "dispatch/tensor_check.hpp"
#include "mxjit/error.hpp"

namespace mxjit::dispatch {
namespace {

using configure::GemmTraits;
using Form = GemmTraits::Form;

GemmTraits::Operand operand_traits(const Tensor& tensor, const std::optional<OperandScale>& scale,
                                   bool mn_major) noexcept {
  GemmTraits::Operand traits{.dtype = tensor.dtype, .mn_major = mn_major};
  if (!scale) return traits;
  switch (scale->block.kind) {
    case Block::Kind::tensor:
      traits.form = Form::tensor;
      return traits;
    case Block::Kind::row:
      traits.form = Form::row;
      return traits;
    case Block::Kind::k:
      traits.form = Form::k;
      return traits;
    case Block::Kind::extents:
      break;
  }
  traits.block_rows = static_cast<std::uint8_t>(scale->block.rows);
  traits.block_cols = static_cast<std::uint8_t>(scale->block.cols);
  if (scale->scaling == Scaling::mx) {
    traits.form = scale->layout == ScaleLayout::blocked ? Form::codes_blocked : Form::codes;
  } else {
    traits.form = scale->layout == ScaleLayout::mn_major ? Form::block_mn_major : Form::block;
  }
  return traits;
}

// Base and pitch are multiples of 16 bytes. The copy engine's pitches end at 2^40.
bool bulk(const Tensor& tensor) noexcept {
  const auto bytes = static_cast<std::uint64_t>(row_pitch(tensor)) * size_of_element(tensor.dtype);
  return ((reinterpret_cast<std::uintptr_t>(tensor.data) | bytes) & 15) == 0 &&
         bytes < (std::uint64_t{1} << 40);
}

// The copy engine writes whole pieces of 16 bytes: past the end of rows that are no multiple.
bool bulk_rows(const Tensor& tensor) noexcept {
  const std::int64_t columns = tensor.rank > 0 ? tensor.shape[static_cast<std::size_t>(tensor.rank) - 1] : 0;
  return static_cast<std::uint64_t>(columns) * size_of_element(tensor.dtype) % 16 == 0;
}

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

GemmKey::Words GemmKey::words() const noexcept {
  const std::uint64_t flags = (traits.beta ? 1U : 0U) | (traits.bulk_loads ? 2U : 0U) |
                              (traits.bulk_store ? 4U : 0U) | (traits.amax ? 8U : 0U) |
                              (traits.batch_invariant ? 16U : 0U);
  return {word(traits.a), word(traits.b),
          static_cast<std::uint64_t>(traits.d) | std::uint64_t{traits.bias} << 8 |
              static_cast<std::uint64_t>(traits.accumulation) << 16 | flags << 24 |
              std::uint64_t{tile} << 32 | static_cast<std::uint64_t>(traits.epilogue) << 40 |
              word(traits.requant) << 48};
}

GemmTraits gemm_traits(const GemmOptions& options, const GemmArgs& args) noexcept {
  GemmTraits traits;
  traits.a = operand_traits(args.a, options.a_scale, options.a_mn_major);
  traits.b = operand_traits(args.b, options.b_scale, options.b_mn_major);
  traits.d = options.output;
  if (args.bias.data != nullptr) traits.bias = static_cast<std::uint8_t>(args.bias.dtype);
  traits.accumulation = options.accumulation;
  traits.epilogue = options.epilogue;
  if (options.requant)
    traits.requant = {.scaling = options.requant->scaling,
                      .rounding = options.requant->rounding,
                      .layout = options.requant->layout};
  traits.amax = options.amax;
  traits.batch_invariant = options.batch_invariant;
  traits.beta = args.beta != 0.0F;
  traits.bulk_loads = bulk(args.a) && bulk(args.b);
  traits.bulk_store = bulk(args.d) && bulk_rows(args.d);
  return traits;
}

GemmKey gemm_key(const GemmTraits& traits, const GemmSizes& sizes, const configure::Profile& profile) {
  GemmKey key{.traits = traits};
  if (sizes.k == 0 || !configure::is_dense_fp8(traits, profile)) return key;
  if (configure::dense_fp8_counts(sizes.m, sizes.n, sizes.k)) {
    key.tile = static_cast<std::uint8_t>(
        configure::choose_tile(traits, sizes.m, sizes.n, sizes.k, profile.sm_count));
  } else if (traits.batch_invariant) {
    throw Error(ErrorCode::unsupported,
                fmt::format("a: {} x {} x {} is more than the batch invariant kernel counts", sizes.m,
                            sizes.n, sizes.k),
                "a");
  }
  return key;
}

configure::Configuration gemm_configuration(const GemmKey& key) {
  if (key.tile == GemmKey::general) return configure::general_configuration(key.traits);
  return configure::dense_fp8_configuration(key.traits, configure::gemm_tiles(key.traits)[key.tile]);
}

}  // namespace mxjit::dispatch
