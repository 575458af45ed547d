// The two scalings of op "quantize", on a source whose fusions have been applied.
#pragma once

#include <optional>
#include <vector>

#include "problem/problem.hpp"
#include "safetensors/host_tensor.hpp"

namespace mxjit::reference {

/// What is quantized: bf16, fp16 or fp32, E matrices of rows x cols, row-major or each stored transposed.
struct Source {
  const HostTensor& tensor;
  std::int64_t experts;
  std::int64_t rows;
  std::int64_t cols;
  bool transposed;
};

/// Groups along the rows of the source: checked ends, and what every size is a multiple of.
struct RowGroups {
  std::vector<std::int64_t> ends;
  int alignment;
};

/// One axis of a problem into q and s, which have the stored shapes and are zero. "col" quantizes the
/// transpose along its rows, so that every axis is written once.
void quantize_axis(const problem::Recipe& recipe, const Source& source,
                   const std::optional<RowGroups>& groups, bool col, HostTensor& q, HostTensor& s);

void quantize_mx(const problem::Recipe& recipe, const Source& source, const std::optional<RowGroups>& groups,
                 bool col, HostTensor& q, HostTensor& s);
void quantize_fp32(const problem::Recipe& recipe, const Source& source,
                   const std::optional<RowGroups>& groups, bool col, HostTensor& q, HostTensor& s);

}  // namespace mxjit::reference
