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
  configure::set_scaling(traits, scale->scaling, scale->block, scale->layout);
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

// Of a matrix along K, checked.
std::int64_t rows(const Tensor& tensor) noexcept {
  return tensor.shape[static_cast<std::size_t>(tensor.rank) - 2];
}

}  // namespace

GemmKey::Words GemmKey::words() const noexcept {
  Words all = configure::words(traits);
  all.back() |= std::uint64_t{tile} << 32;
  return all;
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
  traits.bulk_loads = bulk(args.a) && bulk(args.b) && configure::whole_gates(traits, rows(args.b));
  traits.bulk_store = bulk(args.d) && bulk_rows(args.d);
  return traits;
}

GemmKey gemm_key(const GemmTraits& traits, const GemmSizes& sizes, const configure::Profile& profile,
                 const configure::GemmTuning* tuning) {
  GemmKey key{.traits = traits};
  if (sizes.k == 0 || !configure::is_dense_fp8(traits, profile)) return key;
  if (configure::dense_fp8_counts(sizes.m, sizes.n, sizes.k)) {
    key.tile = static_cast<std::uint8_t>(
        configure::choose_tile(traits, sizes.m, sizes.n, sizes.k, profile.sm_count, tuning));
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
