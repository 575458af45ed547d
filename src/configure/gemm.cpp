#include "configure/gemm.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <set>
#include <string>

#include "configure/gemm_tiles.hpp"
#include "configure/gemm_tuning.hpp"
#include "gemm/params.cuh"
#include "mxjit/error.hpp"
#include "problem/layout.hpp"

namespace mxjit::configure {
namespace {

using Form = GemmTraits::Form;

[[noreturn]] void refuse(const std::string& field, std::string_view what) {
  throw Error(ErrorCode::unsupported, fmt::format("{}: no kernel in this version for {}", field, what),
              field);
}

GemmTraits::Operand operand_traits(const problem::Operand& operand) {
  GemmTraits::Operand traits{.dtype = operand.tensor.dtype, .mn_major = operand.mn_major};
  if (!operand.scaling) return traits;
  const problem::OperandScaling& scaling = *operand.scaling;
  set_scaling(traits, scaling.kind, scaling.block, scaling.layout);
  return traits;
}

bool fits_dense(const GemmTraits::Operand& operand, bool is_a) {
  if (operand.dtype == DType::bf16 || operand.mn_major) return false;
  switch (operand.form) {
    case Form::none:
    case Form::tensor:
    case Form::row:
      return true;
    case Form::block:
      return is_a || operand.block_rows == 128;
    case Form::block_mn_major:
      return is_a && operand.block_rows == 1;
    case Form::k:
    case Form::codes:
    case Form::codes_blocked:
      return false;
  }
  return false;
}

bool has_blocks(const GemmTraits::Operand& operand) {
  return operand.form == Form::block || operand.form == Form::block_mn_major;
}
bool has_blocks(const GemmTraits& traits) { return has_blocks(traits.a) || has_blocks(traits.b); }

// One factor for each row and 128 of K, row by row.
bool is_plain_block(const GemmTraits::Operand& operand) {
  return operand.form == Form::block && operand.block_rows != 128;
}

std::string element(DType dtype) { return fmt::format("Element::{}", to_string(dtype)); }

std::string bias_element(const GemmTraits& traits) {
  return traits.bias == GemmTraits::no_bias ? "Element::none" : element(static_cast<DType>(traits.bias));
}

std::string factor_span(const GemmTraits::Operand& operand) {
  switch (operand.form) {
    case Form::tensor:
      return "FactorSpan::tensor";
    case Form::row:
      return "FactorSpan::row";
    case Form::block:
      return operand.block_rows == 128 ? "FactorSpan::tile" : "FactorSpan::block_plain";
    case Form::block_mn_major:
      return "FactorSpan::block_mn_major";
    case Form::none:
    case Form::k:
    case Form::codes:
    case Form::codes_blocked:
      break;
  }
  return "FactorSpan::none";
}

std::string scale_form(Form form) {
  switch (form) {
    case Form::none:
      return "ScaleForm::none";
    case Form::tensor:
      return "ScaleForm::tensor";
    case Form::row:
      return "ScaleForm::row";
    case Form::k:
      return "ScaleForm::k";
    case Form::block:
    case Form::block_mn_major:
      return "ScaleForm::block";
    case Form::codes:
      return "ScaleForm::codes";
    case Form::codes_blocked:
      return "ScaleForm::codes_blocked";
  }
  return {};
}

bool is_gated(const GemmTraits& traits) { return traits.epilogue != Epilogue::none; }

// A tile's gates and its ups lie in different 128-blocks of B.
bool halves_meet_blocks(const GemmTraits& traits) {
  return traits.epilogue == Epilogue::swiglu && has_blocks(traits.b);
}

// Product columns that a column of D is made of.
int products_of_column(const GemmTraits& traits) { return is_gated(traits) ? 2 : 1; }

std::string epilogue(Epilogue of) {
  switch (of) {
    case Epilogue::none:
      break;
    case Epilogue::swiglu:
      return "Epilogue::swiglu";
    case Epilogue::swiglu_interleaved:
      return "Epilogue::swiglu_interleaved";
  }
  return "Epilogue::none";
}

std::string requant_kind(const GemmTraits& traits) {
  if (!traits.requant) return "Requant::none";
  return traits.requant->scaling == Scaling::mx ? "Requant::mx" : "Requant::fp32";
}

std::string requant_rounding(const GemmTraits& traits) {
  return fmt::format("Rounding::{}", to_string(traits.requant ? traits.requant->rounding : Rounding::rceil));
}

std::string requant_layout(const GemmTraits& traits) {
  return fmt::format("ScaleLayout::{}",
                     to_string(traits.requant ? traits.requant->layout : ScaleLayout::plain));
}

// Nothing is added to sums, and no largest magnitude is kept beside them.
bool adds_nothing(const GemmTraits& traits) {
  return !traits.amax && !traits.beta && traits.bias == GemmTraits::no_bias;
}

// Nothing is done to sums besides scaling them.
bool scales_only(const GemmTraits& traits) {
  return size_of(traits.d) == 2 && adds_nothing(traits) && !is_gated(traits);
}

// The copy engine stores D.
bool stores_boxes(const GemmTraits& traits) { return traits.bulk_store && traits.d != DType::fp32; }

// What becomes of sums leaves registers for others: nothing comes from memory for it but factors, and boxes
// of D go there.
bool leaves_registers(const GemmTraits& traits) {
  return adds_nothing(traits) && (size_of(traits.d) == 2 || traits.requant) && stores_boxes(traits);
}

std::string schedule_name(GemmTile::Schedule schedule) {
  switch (schedule) {
    case GemmTile::Schedule::together:
      break;
    case GemmTile::Schedule::skewed:
      return "Schedule::skewed";
    case GemmTile::Schedule::in_turn:
      return "Schedule::in_turn";
  }
  return "Schedule::together";
}

// Tiles of product columns that a block of the general kernel computes: a scale of D spans 32 or 128 of D's
// columns, each made of two after SwiGLU.
std::int64_t general_passes(const GemmTraits& traits) {
  if (!traits.requant || traits.requant->scaling == Scaling::mx) return 1;
  return 128 * products_of_column(traits) / general_tile;
}

// Registers of the warps that copy and of those that compute, by warpgroups that compute: together they must
// not exceed what the block was launched with. 0: as launched, which is enough.
struct RegisterSplit {
  std::int64_t copy, math;
};
constexpr std::array<RegisterSplit, 4> register_splits = {{{0, 0}, {0, 0}, {40, 232}, {32, 160}}};

bool promises_bulk(const problem::TensorSpec& tensor) {
  return tensor.align.has_value() && *tensor.align == 16;
}
// Whether some tensors of this kind are multiples of 16 bytes and some are not: nothing is promised, since
// the pitch follows from an extent that is a range, or less is promised than the pitch allows.
bool open_bulk(const problem::TensorSpec& tensor) {
  if (!tensor.align) return true;
  const auto element = static_cast<std::int64_t>(size_of(tensor.dtype));
  return *tensor.align < 16 && (!tensor.ld || *tensor.ld * element % 16 == 0);
}

bool may_be_bulk(const problem::TensorSpec& tensor) { return promises_bulk(tensor) || open_bulk(tensor); }

// The copy engine writes whole pieces of 16 bytes: past the end of D's rows where they are no multiple.
bool whole_pieces(const problem::Gemm& problem) {
  const problem::Extent n = problem::gemm_extents(problem).n;
  const std::int64_t columns = problem.epilogue ? n.max / 2 : n.max;
  return !n.is_range() && columns * static_cast<std::int64_t>(size_of(problem.d.tensor.dtype)) % 16 == 0;
}

// Product columns that a tile is a multiple of: those of an output box or of the columns that share a scale.
int tile_unit(const GemmTraits& traits) {
  const bool wide = traits.requant && traits.requant->scaling == Scaling::fp32;
  return (wide ? 128 : 32) * products_of_column(traits);
}

// Blocks of 128 columns that share a scale, each of two products: as wide as the widest tiles are.
bool needs_wide_tiles(const GemmTraits& traits) { return tile_unit(traits) == 256; }

bool promotes(const GemmTraits& traits) {
  return traits.accumulation != problem::Accumulation::fast || has_blocks(traits) || needs_wide_tiles(traits);
}

// `halved`: both halves of a tile lie in one 128-block each.
template <const auto& tiles, int unit, bool halved>
constexpr auto select_tiles() {
  constexpr auto fits = [](const GemmTile& tile) {
    return tile.n % unit == 0 && (!halved || 256 % tile.n == 0);
  };
  std::array<GemmTile, std::ranges::count_if(tiles, fits)> found;
  std::ranges::copy_if(tiles, found.begin(), fits);
  return found;
}

template <const auto& tiles, int unit, bool halved = false>
inline constexpr auto selected_tiles = select_tiles<tiles, unit, halved>();

// Those of `tiles` that are multiples of `unit` wide.
template <const auto& tiles>
std::span<const GemmTile> tiles_by(int unit) {
  switch (unit) {
    case 64:
      return selected_tiles<tiles, 64>;
    case 128:
      return selected_tiles<tiles, 128>;
    default:
      return tiles;
  }
}

std::int64_t highest_tile(const GemmTraits& traits) {
  std::int64_t highest = 0;
  for (const GemmTile& tile : gemm_tiles(traits)) highest = std::max<std::int64_t>(highest, tile.m);
  return highest;
}

// M as it matters to the choice of a tile: each row up to the height of the highest, 64 rows above it.
std::int64_t counted_rows(const GemmTraits& traits, std::int64_t m) {
  return m <= highest_tile(traits) ? m : (m + 63) / 64 * 64;
}

// The tiles that problems with M in [min, max] can get.
void collect_tiles(const GemmTraits& traits, problem::Extent m, std::int64_t n, std::int64_t k, int sm_count,
                   const GemmTuning* tuning, std::set<int>& chosen) {
  for (std::int64_t rows = std::max<std::int64_t>(m.min, 1); rows <= m.max;
       rows = counted_rows(traits, rows) + 1)
    chosen.insert(choose_tile(traits, rows, n, k, sm_count, tuning));
}

void add_dense(const problem::GemmExtents& extents, const GemmTraits& traits, const Profile& profile,
               const GemmTuning* tuning, std::vector<Configuration>& found) {
  const std::span<const GemmTile> tiles = gemm_tiles(traits);
  std::set<int> chosen;
  constexpr std::int64_t most_rows = std::int64_t{1} << 24;  // a longer range gets every tile
  if (extents.n.is_range() || extents.k.is_range() || extents.m.max - extents.m.min > most_rows) {
    for (int i = 0; i < static_cast<int>(tiles.size()); ++i) chosen.insert(i);
  } else {
    const problem::Extent m{extents.m.min, std::max<std::int64_t>(extents.m.max, 1)};
    collect_tiles(traits, m, std::max<std::int64_t>(extents.n.max, 1), extents.k.max, profile.sm_count,
                  tuning, chosen);
  }
  for (const int index : chosen)
    found.push_back(dense_fp8_configuration(traits, tiles[static_cast<std::size_t>(index)]));
}

}  // namespace

bool is_dense_fp8(const GemmTraits& traits, const Profile& profile) {
  // A tile's sums leave no registers for amax beside them while bias or C arrive.
  const bool adds = traits.bias != GemmTraits::no_bias || traits.beta;
  if (traits.amax && adds) return false;
  return profile.target == "sm_90a" && traits.bulk_loads &&
         traits.accumulation != problem::Accumulation::exact && fits_dense(traits.a, true) &&
         fits_dense(traits.b, false);
}

bool whole_gates(const GemmTraits& traits, std::int64_t n) noexcept {
  if (!is_gated(traits)) return true;
  return n % (halves_meet_blocks(traits) ? 256 : 16) == 0;
}

bool dense_fp8_counts(std::int64_t m, std::int64_t n, std::int64_t k) noexcept {
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max() - 512;
  return m <= most && n <= most && k <= most && (m / 64 + 1) * (n / 64 + 1) <= most;
}

std::span<const GemmTile> gemm_tiles(const GemmTraits& traits) {
  if (needs_wide_tiles(traits)) return wide_tiles;
  const int unit = tile_unit(traits);
  if (halves_meet_blocks(traits)) return selected_tiles<block_tiles, 64, true>;
  if (has_blocks(traits)) return tiles_by<block_tiles>(unit);
  return promotes(traits) ? tiles_by<promote_tiles>(unit) : tiles_by<fast_tiles>(unit);
}

std::string tile_name(const GemmTile& tile) {
  return fmt::format("{}x{}{}{}{}", tile.m, tile.n,
                     tile.parts > 1 ? fmt::format(" parts {}", tile.parts) : "",
                     tile.k_split > 1 ? fmt::format(" k_split {}", tile.k_split) : "",
                     tile.schedule == GemmTile::Schedule::in_turn ? " in_turn" : "");
}

double d_bytes(const GemmTraits& traits) { return 2.0 / products_of_column(traits); }

int choose_tile(const GemmTraits& traits, std::int64_t m, std::int64_t n, std::int64_t k, int sm_count,
                const GemmTuning* tuning) {
  if (tuning != nullptr)
    if (const auto tuned = tuning->find(traits, m, n, k)) return *tuned;
  const std::span<const GemmTile> tiles = gemm_tiles(traits);
  constexpr std::int64_t any_rows = 512;  // what every M counts as where none may matter
  m = counted_rows(traits, traits.batch_invariant ? any_rows : m);
  const std::int64_t k_blocks = (k + 127) / 128;
  int best = 0;
  double best_ns = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    const double ns = modelled_ns(as_configured(traits, tiles[i]), m, n, k_blocks, sm_count, d_bytes(traits));
    if (ns >= best_ns) continue;
    best_ns = ns;
    best = static_cast<int>(i);
  }
  return best;
}

GemmTile as_configured(const GemmTraits& traits, GemmTile tile) {
  // No registers are left for wide tiles of one warpgroup.
  if (tile.schedule == GemmTile::Schedule::in_turn && tile.n > 128 && !leaves_registers(traits))
    tile.schedule = GemmTile::Schedule::together;
  // Nor, where sums are more than scaled, for more than one box at a time.
  if (!stores_boxes(traits))
    tile.out_boxes = 0;
  else if (!scales_only(traits))
    tile.out_boxes = 1;
  return tile;
}

Configuration dense_fp8_configuration(const GemmTraits& traits, const GemmTile& chosen) {
  const GemmTile tile = as_configured(traits, chosen);
  const bool promote = promotes(traits);
  const std::int64_t warpgroups = std::int64_t{tile.m} / 64 * tile.k_split;
  // The next tile's products would spill beside sums that are more than scaled, by their columns' factors, or
  // many of which SwiGLU joins.
  const bool joins_many = is_gated(traits) && tile.n > 128;
  const bool next = promote && tile.k_split == 1 && leaves_registers(traits) &&
                    (scales_only(traits) || (traits.b.form != Form::row && !joins_many));
  const RegisterSplit registers = register_splits[static_cast<std::size_t>(warpgroups)];
  Configuration configuration;
  configuration.kernel = "gemm/dense_fp8";
  configuration.constants = {
      {"a", element(traits.a.dtype)},
      {"b", element(traits.b.dtype)},
      {"output", element(traits.d)},
      {"bias", bias_element(traits)},
      {"beta", traits.beta},
      {"amax", traits.amax},
      {"epilogue", epilogue(traits.epilogue)},
      {"requant", requant_kind(traits)},
      {"requant_rounding", requant_rounding(traits)},
      {"requant_layout", requant_layout(traits)},
      {"a_span", factor_span(traits.a)},
      {"b_span", factor_span(traits.b)},
      {"accumulation", std::string(promote ? "Accumulation::promote" : "Accumulation::fast")},
      {"block_m", std::int64_t{tile.m}},
      {"block_n", std::int64_t{tile.n}},
      {"parts", std::int64_t{tile.parts}},
      {"k_split", std::int64_t{tile.k_split}},
      {"schedule", schedule_name(tile.schedule)},
      {"next", next},
      {"stages", std::int64_t{tile.stages}},
      {"warpgroups", warpgroups},
      {"copy_registers", registers.copy},
      {"math_registers", registers.math},
      {"tma_store", stores_boxes(traits)},
      {"out_boxes", std::int64_t{tile.out_boxes}},
      {"raster", std::int64_t{8}},
  };
  configuration.threads = static_cast<int>((warpgroups + 1) * 128);
  configuration.min_blocks = 1;
  const int b_blocks = halves_meet_blocks(traits) ? 2 : dense_fp8_tile_blocks(tile.n);
  const int block_factors =
      has_blocks(traits) ? dense_fp8_block_factors(tile.m, tile.stages, b_blocks, is_plain_block(traits.a))
                         : 0;
  configuration.shared_bytes =
      dense_fp8_shared_bytes(tile.m, tile.n, tile.stages, tile.k_split, tile.out_boxes,
                             dense_fp8_out_columns(tile.n, is_gated(traits)), block_factors,
                             tile.schedule == GemmTile::Schedule::in_turn);
  return configuration;
}

Configuration general_configuration(const GemmTraits& traits) {
  Configuration configuration;
  configuration.kernel = "gemm/general";
  configuration.constants = {
      {"a", element(traits.a.dtype)},
      {"b", element(traits.b.dtype)},
      {"output", element(traits.d)},
      {"bias", bias_element(traits)},
      {"beta", traits.beta},
      {"a_mn_major", traits.a.mn_major},
      {"b_mn_major", traits.b.mn_major},
      {"a_scale", scale_form(traits.a.form)},
      {"b_scale", scale_form(traits.b.form)},
      {"a_scale_rows", std::int64_t{traits.a.block_rows}},
      {"a_scale_cols", std::int64_t{traits.a.block_cols}},
      {"b_scale_rows", std::int64_t{traits.b.block_rows}},
      {"b_scale_cols", std::int64_t{traits.b.block_cols}},
      {"amax", traits.amax},
      {"epilogue", epilogue(traits.epilogue)},
      {"requant", requant_kind(traits)},
      {"requant_rounding", requant_rounding(traits)},
      {"requant_layout", requant_layout(traits)},
      {"passes", general_passes(traits)},
  };
  configuration.threads = general_threads;
  configuration.min_blocks = 1;
  return configuration;
}

GemmTraits gemm_traits(const problem::Gemm& problem) {
  if (problem.groups) refuse("/groups", "groups");
  GemmTraits traits;
  traits.a = operand_traits(problem.a);
  traits.b = operand_traits(problem.b);
  traits.d = problem.d.tensor.dtype;
  if (problem.bias) traits.bias = static_cast<std::uint8_t>(*problem.bias);
  traits.accumulation = problem.accumulation;
  if (problem.epilogue)
    traits.epilogue = problem.epilogue->interleave ? Epilogue::swiglu_interleaved : Epilogue::swiglu;
  if (problem.d.requant)
    traits.requant = {.scaling = problem.d.requant->scaling,
                      .rounding = problem.d.requant->rounding,
                      .layout = problem.d.requant->scale_layout};
  traits.amax = problem.d.amax;
  traits.batch_invariant = problem.batch_invariant;
  traits.beta = static_cast<float>(problem.beta) != 0.0F;  // a launch takes a float
  const problem::Extent n = problem::gemm_extents(problem).n;
  traits.bulk_loads = promises_bulk(problem.a.tensor) && promises_bulk(problem.b.tensor) &&
                      (n.is_range() ? !is_gated(traits) : whole_gates(traits, n.max));
  traits.bulk_store = promises_bulk(problem.d.tensor) && whole_pieces(problem);
  return traits;
}

std::vector<Configuration> configure_gemm(const problem::Gemm& given, const Profile& profile,
                                          const GemmTuning* tuning) {
  gemm_traits(given);  // refuses before defaults are filled in
  const problem::Problem whole = problem::with_defaults({.name = {}, .op = given});
  const auto& problem = std::get<problem::Gemm>(whole.op);
  const problem::GemmExtents extents = problem::gemm_extents(problem);
  std::vector<Configuration> found;
  GemmTraits traits = gemm_traits(problem);
  // What no field promises may or may not fit, problem by problem.
  const bool open_store = extents.n.is_range() ? may_be_bulk(problem.d.tensor)
                                               : open_bulk(problem.d.tensor) && whole_pieces(problem);
  bool general = !traits.bulk_loads || extents.k.min == 0 ||
                 !dense_fp8_counts(extents.m.max, extents.n.max, extents.k.max);
  traits.bulk_loads = may_be_bulk(problem.a.tensor) && may_be_bulk(problem.b.tensor) &&
                      (extents.n.is_range() || whole_gates(traits, extents.n.max));
  if (is_dense_fp8(traits, profile) && extents.k.max > 0) {
    if (traits.batch_invariant && !dense_fp8_counts(extents.m.max, extents.n.max, extents.k.max))
      refuse("/batch_invariant", "extents past 2^31");
    add_dense(extents, traits, profile, tuning, found);
    if (open_store) {
      traits.bulk_store = true;
      add_dense(extents, traits, profile, tuning, found);
    }
  } else {
    general = true;
  }
  if (general) found.push_back(general_configuration(traits));
  std::ranges::sort(found);
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

}  // namespace mxjit::configure
