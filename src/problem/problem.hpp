// The problem: what the caller asks for. Pure data; one struct per op, as problem files name their fields.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
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

/// A tensor as a problem declares it. `ld` and `align` default to packed rows and to the largest of 16, 8, 4,
/// 2, 1 bytes that divides the row pitch; parsing fills the defaults in.
struct TensorSpec {
  DType dtype = DType::bf16;
  Shape shape;
  std::optional<std::int64_t> ld;  // row pitch in elements
  std::optional<int> align;        // bytes: 16, 8, 4, 2 or 1
  friend bool operator==(const TensorSpec&, const TensorSpec&) = default;
};

enum class InputLayout : std::uint8_t { row, col };

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
  TensorSpec input;  // (M,N) or (E,M,N), logical
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
  friend bool operator==(const Dequantize&, const Dequantize&) = default;
};

enum class Placement : std::uint8_t { dense, m_groups, k_groups, per_expert };

struct PackScales {
  bool unpack = false;  // op "unpack_scales"
  Shape shape;          // logical scale matrix (R,C) or (E,R,C)
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
  enum class Span : std::uint8_t { block, row, tensor, k };
  Span span = Span::block;
  Block block;  // for Span::block
  ScaleLayout layout = ScaleLayout::plain;
  friend bool operator==(const OperandScaling&, const OperandScaling&) = default;
};

struct Operand {
  TensorSpec tensor;
  bool mn_major = false;
  std::optional<OperandScaling> scaling;
  friend bool operator==(const Operand&, const Operand&) = default;
};

enum class Accumulation : std::uint8_t { promote, fast, exact };
enum class GemmGroupKind : std::uint8_t { m, m_masked, ids, k };

struct GemmGroups {
  GemmGroupKind kind = GemmGroupKind::m;
  std::int64_t count = 0;
  friend bool operator==(const GemmGroups&, const GemmGroups&) = default;
};

struct GemmOutput {
  TensorSpec tensor;  // dtype; ld and align optional; the shape follows from a and b
  std::optional<Recipe> requant;
  bool amax = false;
  friend bool operator==(const GemmOutput&, const GemmOutput&) = default;
};

struct Gemm {
  Operand a, b;
  GemmOutput d;
  Accumulation accumulation = Accumulation::promote;
  std::optional<DType> bias;
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
  Extent tokens;
  std::int64_t hidden = 0, intermediate = 0, experts = 0, top_k = 0;
  std::int64_t first_local = 0, local_count = 0;
  Recipe weights, activations;
  Swiglu activation;
  bool weight_on_input = false;
  DType d = DType::bf16;
  friend bool operator==(const Moe&, const Moe&) = default;
};

struct Problem {
  std::string name;  // optional label; never part of a kernel
  std::variant<Quantize, Dequantize, PackScales, PadGroups, Gemm, Moe> op;
  friend bool operator==(const Problem&, const Problem&) = default;
};

/// Parses and validates a problem file. Throws Error(invalid_argument) whose argument() is the JSON pointer
/// of the field and whose message lists what is allowed.
Problem parse(std::string_view json);
/// The canonical form: sorted keys, every default written out. parse(print(p)) == p.
std::string print(const Problem& problem);
/// The op's name in problem files.
std::string_view op_name(const Problem& problem);
/// Checks the combinations that parse checks, for problems built in code. Throws as parse does.
void validate(const Problem& problem);
/// True when every extent is a single number.
bool is_concrete(const Problem& problem);

/// One tensor that a problem reads or writes: its name and stored shape (problem.md section 1).
struct TensorDecl {
  std::string name;
  DType dtype = DType::u8;
  std::vector<std::int64_t> shape;
  bool output = false;
  bool optional = false;
};
/// Every tensor of a concrete problem, inputs first.
std::vector<TensorDecl> tensors(const Problem& problem);

}  // namespace mxjit::problem
