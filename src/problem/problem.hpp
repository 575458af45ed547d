// The problem: what the caller asks for. Pure data; one struct per op, as problem files name their fields.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "mxjit/types.hpp"

namespace mxjit::problem {

/// One extent of a shape. A problem that runs has min == max; prewarm and explain accept a range.
struct Extent {
  std::int64_t min = 0;
  std::int64_t max = 0;
  Extent() = default;
  Extent(std::int64_t value)
      : min(value), max(value) {}  // NOLINT(google-explicit-constructor): a number is an extent
  Extent(std::int64_t low, std::int64_t high) : min(low), max(high) {}
  bool is_range() const { return min != max; }
  friend bool operator==(const Extent&, const Extent&) = default;
};

using Shape = std::vector<Extent>;

/// A tensor as a problem declares it. A row is what memory holds contiguously: the last logical axis, or the
/// one before it for input layout "col" and operand major "mn". `ld` and `align` default to packed rows and
/// to the largest of 16, 8, 4, 2, 1 bytes that divides the row pitch; with_defaults fills them in. Where the
/// row extent is a range and no `ld` is given, both stay empty: each concrete problem has its own.
struct TensorSpec {
  DType dtype = DType::bf16;
  Shape shape;
  std::optional<std::int64_t> ld;  // row pitch in elements
  std::optional<int> align;        // bytes: 16, 8, 4, 2 or 1
  friend bool operator==(const TensorSpec&, const TensorSpec&) = default;
};

/// The same two promises for a tensor whose dtype and shape follow from the rest of the problem.
struct Pitch {
  std::optional<std::int64_t> ld;
  std::optional<int> align;
  friend bool operator==(const Pitch&, const Pitch&) = default;
};

/// "col": the memory is the transpose of the last two axes.
enum class InputLayout : std::uint8_t { row, col };
std::string_view to_string(InputLayout layout);

struct Recipe {
  DType format = DType::e4m3;  // e4m3 or e5m2
  Scaling scaling = Scaling::mx;
  Block block;
  Rounding rounding = Rounding::rceil;
  ScaleLayout scale_layout = ScaleLayout::plain;
  std::optional<double> amax_cap;
  friend bool operator==(const Recipe&, const Recipe&) = default;
};

/// Groups along M with int32 ends in the tensor `offsets`.
struct MGroups {
  std::int64_t count = 0;
  int alignment = 128;  // 128, 32 or 1: what every group size is a multiple of
  friend bool operator==(const MGroups&, const MGroups&) = default;
};

struct Swiglu {
  bool interleave = false;  // gate and up alternate column by column; otherwise gate is the first half
  double alpha = 1.0;
  std::optional<double> limit;  // gpt-oss clamp
  friend bool operator==(const Swiglu&, const Swiglu&) = default;
};
struct RmsNorm {
  double eps = 1e-6;
  friend bool operator==(const RmsNorm&, const RmsNorm&) = default;
};
using Pre = std::variant<std::monostate, Swiglu, RmsNorm>;

struct Quantize {
  TensorSpec input;  // (M,N) or (E,M,N), logical; (M,2N) or (E,M,2N) under swiglu
  InputLayout input_layout = InputLayout::row;
  Recipe recipe;
  Axes axes;
  std::optional<MGroups> groups;
  Pre pre;
  bool emit_high = false;
  friend bool operator==(const Quantize&, const Quantize&) = default;
};

struct Dequantize {
  TensorSpec q;  // dtype is the format; shape is logical
  Scaling scaling = Scaling::mx;
  Block block;
  ScaleLayout scale_layout = ScaleLayout::plain;
  bool axis_col = false;  // q is stored as q_col
  std::optional<MGroups> groups;
  DType output = DType::bf16;
  Pitch output_pitch;  // of output `x`, (M,N) or (E,M,N) row-major
  friend bool operator==(const Dequantize&, const Dequantize&) = default;
};

using mxjit::Placement;

struct PackScales {
  bool unpack = false;  // op "unpack_scales"
  Shape shape;          // logical scale matrix (R,C), or (E,R,C) for per_expert
  Pitch pitch;          // of the plain matrix `s`
  Placement placement = Placement::dense;
  std::optional<std::int64_t> groups;
  friend bool operator==(const PackScales&, const PackScales&) = default;
};

struct PadGroups {
  bool unpad = false;  // op "unpad_groups"
  TensorSpec input;    // (T,D), unpadded
  std::int64_t groups = 0;
  std::int64_t alignment = 0;
  friend bool operator==(const PadGroups&, const PadGroups&) = default;
};

struct OperandScaling {
  Scaling kind = Scaling::mx;
  Block block;
  ScaleLayout layout = ScaleLayout::plain;
  friend bool operator==(const OperandScaling&, const OperandScaling&) = default;
};

struct Operand {
  TensorSpec tensor;
  bool mn_major = false;
  std::optional<OperandScaling> scaling;
  friend bool operator==(const Operand&, const Operand&) = default;
};

using mxjit::Accumulation;

/// m: ragged rows of A, ends in `offsets`. m_masked: A (G,Mmax,K) with `counts`. ids: an expert per row.
/// k: ragged contraction, D (G,M,N).
enum class GemmGroupKind : std::uint8_t { m, m_masked, ids, k };
std::string_view to_string(GemmGroupKind kind);

struct GemmGroups {
  GemmGroupKind kind = GemmGroupKind::m;
  std::int64_t count = 0;
  friend bool operator==(const GemmGroups&, const GemmGroups&) = default;
};

struct GemmOutput {
  TensorSpec
      tensor;  // dtype; ld and align optional; the shape follows from a and b, with_defaults fills it in
  std::optional<Recipe> requant;
  bool amax = false;
  friend bool operator==(const GemmOutput&, const GemmOutput&) = default;
};

struct Gemm {
  Operand a;  // (M,K), (B,M,K) or, m_masked, (G,Mmax,K)
  Operand b;  // (N,K), (B,N,K) or, groups along M, (G,N,K)
  GemmOutput d;
  Accumulation accumulation = Accumulation::promote;
  std::optional<DType> bias;
  Pitch bias_pitch;
  double alpha = 1.0;
  double beta = 0.0;
  std::optional<GemmGroups> groups;
  bool tail_keep = false;
  std::optional<Swiglu> epilogue;
  bool deterministic = true;
  bool batch_invariant = false;
  friend bool operator==(const Gemm&, const Gemm&) = default;
};

struct Moe {
  Extent tokens, hidden, intermediate;
  std::int64_t experts = 0, top_k = 0;
  std::int64_t first_local = 0, local_count = 0;
  Recipe weights, activations;
  Swiglu activation;
  bool weight_on_input = false;
  DType d = DType::bf16;
  Pitch d_pitch;
  friend bool operator==(const Moe&, const Moe&) = default;
};

struct Problem {
  std::string name;  // optional label; never part of a kernel
  std::variant<Quantize, Dequantize, PackScales, PadGroups, Gemm, Moe> op;
  friend bool operator==(const Problem&, const Problem&) = default;
};

/// Parses and validates a problem file (UTF-8 JSON). Throws Error(invalid_argument) whose argument() is the
/// JSON pointer of the field, empty where the text is not JSON, and whose message lists what is allowed and
/// what came.
Problem parse(std::string_view text);
/// The canonical form: one line, sorted keys, every default written out. parse(print(p)) == with_defaults(p).
/// Throws as validate does.
std::string print(const Problem& problem);
/// The op's name in problem files.
std::string_view op_name(const Problem& problem);
/// Checks everything that parse checks, for problems built in code. Throws as parse does.
void validate(const Problem& problem);
/// The problem with every `ld`, `align` and derived shape filled in, as parse returns it. Expects a valid
/// problem.
Problem with_defaults(Problem problem);
/// True when every extent is a single number.
bool is_concrete(const Problem& problem);
/// The concrete problem with every extent at its maximum: what sizes outputs and workspaces of a range.
/// `align` that no field promised is chosen anew from the new pitches.
Problem largest(const Problem& problem);

/// One tensor that a problem reads or writes: its name and stored shape (what a file holds, packed).
struct TensorDecl {
  std::string name;
  DType dtype = DType::u8;
  std::vector<std::int64_t> shape;
  bool output = false;
  bool optional = false;           // may be absent (w13_bias, w2_bias) or left out by the caller (status)
  std::vector<DType> also_dtypes;  // accepted besides dtype: u8 for e8m0, i64 ids
  std::vector<std::vector<std::int64_t>> also_shapes;  // accepted besides shape; size 1 or per row, and so on
};
/// Every tensor of a concrete problem, inputs first. Throws Error(invalid_argument) for a range and for sizes
/// past int64.
std::vector<TensorDecl> tensors(const Problem& problem);

}  // namespace mxjit::problem
