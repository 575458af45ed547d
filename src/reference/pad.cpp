// Ops "pad_groups" and "unpad_groups": groups of rows moved to starts that are multiples of an alignment.
#include <fmt/format.h>

#include <algorithm>

#include "mxjit/error.hpp"
#include "reference/layout.hpp"
#include "reference/matrix.hpp"
#include "reference/ops.hpp"

namespace mxjit::reference {
namespace {

void copy_rows(const HostTensor& from, std::int64_t from_row, HostTensor& to, std::int64_t to_row,
               std::int64_t count, std::int64_t row_bytes) {
  std::copy_n(from.bytes.begin() + from_row * row_bytes, count * row_bytes,
              to.bytes.begin() + to_row * row_bytes);
}

void pad(const problem::PadGroups& op, const std::vector<std::int64_t>& ends, std::int64_t row_bytes,
         const TensorMap& inputs, TensorMap& outputs) {
  std::int64_t first = 0;
  std::int64_t start = 0;
  for (std::size_t g = 0; g < ends.size(); ++g) {
    const std::int64_t size = ends[g] - first;
    copy_rows(inputs.at("x"), first, outputs.at("x_padded"), start, size, row_bytes);
    write_as(outputs.at("starts"), static_cast<std::int64_t>(g), static_cast<std::int32_t>(start));
    start += ceil_to(size, op.alignment);
    write_as(outputs.at("ends"), static_cast<std::int64_t>(g), static_cast<std::int32_t>(start));
    first = ends[g];
  }
}

void unpad(const std::vector<std::int64_t>& ends, std::int64_t row_bytes, const TensorMap& inputs,
           TensorMap& outputs) {
  const HostTensor& padded = inputs.at("x_padded");
  std::int64_t first = 0;
  for (std::size_t g = 0; g < ends.size(); ++g) {
    const std::int64_t size = ends[g] - first;
    const std::int64_t start = read_as<std::int32_t>(inputs.at("starts"), static_cast<std::int64_t>(g));
    if (start < 0 || start > padded.shape[0] - size) {
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format("starts[{}] = {}: expected at least 0 and at most {}, so that the {} rows of the group "
                      "lie in x_padded",
                      g, start, padded.shape[0] - size, size),
          "starts");
    }
    copy_rows(padded, start, outputs.at("x"), first, size, row_bytes);
    first = ends[g];
  }
}

}  // namespace

void pad_groups(const problem::PadGroups& op, const TensorMap& inputs, TensorMap& outputs) {
  const std::vector<std::int64_t> ends = read_offsets(inputs.at("offsets"), extent(op.input.shape, 1), 1);
  const std::int64_t row_bytes =
      extent(op.input.shape, 0) * static_cast<std::int64_t>(size_of(op.input.dtype));
  if (op.unpad) {
    unpad(ends, row_bytes, inputs, outputs);
  } else {
    pad(op, ends, row_bytes, inputs, outputs);
  }
}

}  // namespace mxjit::reference
