// One call to measure: as a problem for library and reference, with a name and the contents of its integers.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "configure/profile.hpp"
#include "dispatch/run.hpp"
#include "problem/problem.hpp"

namespace mxjit::bench {

using Sizes = std::vector<std::int64_t>;

struct OpCase {
  std::string name;  // "row 1x32 rceil plain"
  problem::Problem problem;
  Sizes shape;                                             // what a row of the result shows
  std::map<std::string, std::vector<std::int32_t>> words;  // contents of its i32 inputs
  std::map<std::string, std::string> places;  // of tensors that do not lie where place_of puts them
};

/// MX 1x32 of dense bf16 `shape`, (M, N) or (E, M, N), to e4m3.
OpCase mx_case(const Sizes& shape, Axes axes, Rounding rounding, ScaleLayout layout);
/// Plain float scales of dense bf16 `shape`, (M, N), to e4m3: blocks of 128 or 128 x 128, rows or the tensor.
OpCase fp32_case(const Sizes& shape, Axes axes, const Block& block);
/// MX 1x32, rceil, with groups along M that end at `ends`.
OpCase grouped_case(const Sizes& shape, Axes axes, ScaleLayout layout, const std::vector<std::int32_t>& ends,
                    int alignment);
/// e4m3 of logical `shape` to bf16.
OpCase dequantize_case(const Sizes& shape, Scaling scaling, const Block& block, ScaleLayout layout,
                       bool axis_col);
/// Codes of `shape`; `ends` of groups along rows or columns where the placement has groups.
OpCase pack_case(const Sizes& shape, Placement placement, const std::vector<std::int32_t>& ends, bool unpack);
/// Groups of rows of bf16 `shape`.
OpCase pad_case(const Sizes& shape, const std::vector<std::int32_t>& ends, std::int64_t alignment,
                bool unpad);
/// Of a case that is a quantization.
inline const problem::Quantize& quantize_of(const OpCase& one) {
  return std::get<problem::Quantize>(one.problem.op);
}
/// The quantization of SwiGLU of x, gate before up: half as many columns come out.
OpCase with_swiglu(OpCase one);
/// The quantization of x after RMSNorm with a weight.
OpCase with_rmsnorm(OpCase one);
/// One axis of a quantization of two.
OpCase with_axes(OpCase one, Axes axes);

/// Ends of `count` groups in [0, limit], of uneven sizes that are multiples of `alignment`; the same ones
/// always. One of more than 16 is empty, and a hundredth of the rows or so are no group's.
std::vector<std::int32_t> uneven_ends(std::int64_t count, std::int64_t limit, std::int64_t alignment);

/// Its tensors, without those that are optional.
std::vector<problem::TensorDecl> tensors_of(const OpCase& one);
std::int64_t bytes_of(const problem::TensorDecl& decl);
/// Device memory that the case has to move: every input and output once.
double moved_bytes(const OpCase& one);
/// Where a tensor lies among those that cases share: inputs by their names (integers by
/// their contents), outputs apart from them.
std::string place_of(const OpCase& one, const problem::TensorDecl& decl);
/// Bytes of its workspace.
std::int64_t workspace_bytes(const OpCase& one);
/// Shapes as the problem declares them, addresses as `address` says. The workspace, where there is one, is
/// the tensor dispatch::workspace_name.
dispatch::DeviceTensors device_tensors(const OpCase& one,
                                       const std::function<void*(const problem::TensorDecl&)>& address);
/// The call, with all that does not depend on the stream prepared. `context` outlives it.
std::function<void(Stream)> prepare(Context& context, const OpCase& one,
                                    const dispatch::DeviceTensors& tensors);

/// The descriptors of the case's kernels on the devices of `profile`, as a JSON array.
std::string configuration_json(const OpCase& one, const configure::Profile& profile);

}  // namespace mxjit::bench
