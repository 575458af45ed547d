// Configurations of op "gemm": which kernel can take a problem, and which tile it gets.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "configure/configuration.hpp"
#include "configure/profile.hpp"
#include "mxjit/gemm.hpp"
#include "problem/problem.hpp"

namespace mxjit::configure {

class GemmTuning;

/// Everything but the extents that selects a GEMM kernel. Plain data.
struct GemmTraits {
  /// Where an operand's scales lie. k: one a contraction index. Matrices are one scale a block, row-major, or
  /// transposed (mn_major).
  enum class Form : std::uint8_t { none, tensor, row, k, block, block_mn_major, codes, codes_blocked };
  /// How D gets a scale a block of its columns.
  struct Requant {
    Scaling scaling = Scaling::mx;
    Rounding rounding = Rounding::rceil;
    ScaleLayout layout = ScaleLayout::plain;
    friend bool operator==(const Requant&, const Requant&) = default;
  };
  struct Operand {
    DType dtype = DType::e4m3;  // e4m3, e5m2 or bf16
    Form form = Form::none;
    bool mn_major = false;        // (K, rows) in memory
    std::uint8_t block_rows = 1;  // of a scaled block: 1, 32 or 128
    std::uint8_t block_cols = 1;
    friend bool operator==(const Operand&, const Operand&) = default;
  };
  Operand a, b;
  DType d = DType::bf16;  // bf16, fp16, fp32 or e4m3
  /// DType of the bias, or no_bias.
  std::uint8_t bias = no_bias;
  problem::Accumulation accumulation = problem::Accumulation::promote;
  Epilogue epilogue = Epilogue::none;
  std::optional<Requant> requant;
  bool amax = false;             // of D is written
  bool batch_invariant = false;  // one tile for every M
  bool beta = false;             // C is added
  // Both operands K-major, bases and pitches multiples of 16 bytes, and whole_gates of N.
  bool bulk_loads = true;
  bool bulk_store = true;  // d: base, pitch and the bytes of a row multiples of 16
  friend bool operator==(const GemmTraits&, const GemmTraits&) = default;

  static constexpr std::uint8_t no_bias = 255;
};

/// A tile of the Hopper kernel and the cost the model gives it.
struct GemmTile {
  /// What the warpgroups do at a time: products of one tile, all of them; in two parts of its columns, each
  /// stored while the other multiplies; or tiles in turn, one stored while another multiplies.
  enum class Schedule : std::uint8_t { together, skewed, in_turn };

  std::int16_t m = 0, n = 0;
  std::int8_t parts = 1;  // of its columns, promoted one after another
  Schedule schedule = Schedule::together;
  std::int8_t k_split = 1;    // warpgroups that share 64 rows, each every second block of K
  std::int8_t stages = 0;     // of shared memory, each 128 of K
  std::int8_t out_boxes = 1;  // of output that a warp stages before it waits
  std::int32_t block_ns = 0;  // 128 of K
  /// Of a tile, in turn of the last one: what products and loads of the next do not hide.
  std::int32_t overhead_ns = 0;
};

/// True where `n` product columns are such as the Hopper kernel takes gates and ups in: by eights; all gates
/// before all ups in blocks of 128 x 128, by blocks. Without SwiGLU any.
bool whole_gates(const GemmTraits& traits, std::int64_t n) noexcept;
/// True where the Hopper kernel can take problems of `traits` with K > 0 on `profile`; else the general
/// kernel does.
bool is_dense_fp8(const GemmTraits& traits, const Profile& profile);
/// True where the Hopper kernel, which counts in 32 bits, can count these extents and their tiles.
bool dense_fp8_counts(std::int64_t m, std::int64_t n, std::int64_t k) noexcept;
/// The tiles that problems of `traits` can get. Not empty.
std::span<const GemmTile> gemm_tiles(const GemmTraits& traits);
/// "128x224", "64x128 k_split 2": no other tile of a problem has it.
std::string tile_name(const GemmTile& tile);
/// The tile as the kernel of these traits has it.
GemmTile as_configured(const GemmTraits& traits, GemmTile tile);
/// Bytes of D that the model counts for a product column of a row: elements of 16 bits.
double d_bytes(const GemmTraits& traits);
/// Index in gemm_tiles of the tile with the least modelled time; batch invariant, of one that M has no say
/// in. What `tuning` knows of the problem goes before. Cheap: called for every launch. Extents of at least 1.
int choose_tile(const GemmTraits& traits, std::int64_t m, std::int64_t n, std::int64_t k, int sm_count,
                const GemmTuning* tuning = nullptr);

Configuration dense_fp8_configuration(const GemmTraits& traits, const GemmTile& chosen);
Configuration general_configuration(const GemmTraits& traits);

/// How an operand is scaled, as traits say it.
constexpr void set_scaling(GemmTraits::Operand& traits, Scaling scaling, const Block& block,
                           ScaleLayout layout) noexcept {
  using Form = GemmTraits::Form;
  if (block.kind != Block::Kind::extents) {
    traits.form = block.kind == Block::Kind::tensor ? Form::tensor
                  : block.kind == Block::Kind::row  ? Form::row
                                                    : Form::k;
    return;
  }
  traits.block_rows = static_cast<std::uint8_t>(block.rows);
  traits.block_cols = static_cast<std::uint8_t>(block.cols);
  if (scaling == Scaling::mx) {
    traits.form = layout == ScaleLayout::blocked ? Form::codes_blocked : Form::codes;
  } else {
    traits.form = layout == ScaleLayout::mn_major ? Form::block_mn_major : Form::block;
  }
}
/// Throws Error(unsupported) naming the field this version does not execute.
GemmTraits gemm_traits(const problem::Gemm& problem);
/// As configure().
std::vector<Configuration> configure_gemm(const problem::Gemm& given, const Profile& profile,
                                          const GemmTuning* tuning = nullptr);

}  // namespace mxjit::configure
