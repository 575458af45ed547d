// One quantization to measure: as options for the library, as a problem for the reference, as a name.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "configure/profile.hpp"
#include "mxjit/quantize.hpp"
#include "problem/problem.hpp"

namespace mxjit::bench {

struct QuantizeCase {
  QuantizeOptions options;
  problem::Quantize quantize;
  std::string name;  // "row 1x32 rceil plain"
};

/// MX 1x32 of dense bf16 `shape`, (M, N) or (E, M, N), to e4m3.
QuantizeCase mx_case(const std::vector<std::int64_t>& shape, Axes axes, Rounding rounding,
                     ScaleLayout layout);
/// Plain float scales of dense bf16 `shape`, (M, N), to e4m3: blocks of 128 or 128 x 128, rows or the tensor.
QuantizeCase fp32_case(const std::vector<std::int64_t>& shape, Axes axes, const Block& block);
/// One axis of a case of two.
QuantizeCase with_axes(QuantizeCase one, Axes axes);

/// An output of a case; in order q_row, s_row, q_col, s_col those that it has.
struct OutputBytes {
  std::string name;
  std::int64_t bytes;
};
std::vector<OutputBytes> output_bytes(const QuantizeCase& quantize_case);
/// Device memory that the case has to move: x and every output once.
double moved_bytes(const QuantizeCase& quantize_case);

/// Where the tensors of one call lie, as addresses.
struct Places {
  void* x = nullptr;
  void* q_row = nullptr;
  void* s_row = nullptr;
  void* q_col = nullptr;
  void* s_col = nullptr;
  void* workspace = nullptr;  // of workspace_bytes
};
std::int64_t workspace_bytes(const QuantizeCase& quantize_case);
/// The arguments of a call: shapes as the problem declares them, tensors that the case lacks left empty.
QuantizeArgs arguments(const QuantizeCase& quantize_case, const Places& places);

/// The descriptors of the case's kernels on the devices of `profile`, as a JSON array.
std::string configuration_json(const QuantizeCase& quantize_case, const configure::Profile& profile);

}  // namespace mxjit::bench
