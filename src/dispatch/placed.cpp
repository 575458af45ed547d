#include "dispatch/placed.hpp"

#include <algorithm>
#include <optional>

namespace mxjit::dispatch {
namespace {

problem::Pitch pitch_of(const problem::TensorSpec& spec) { return {.ld = spec.ld, .align = spec.align}; }

// What the problem promises of the tensor, or nothing.
std::optional<problem::Pitch> promises(const problem::Problem& problem, const std::string& name) {
  if (const auto* quantize = std::get_if<problem::Quantize>(&problem.op))
    if (name == "x") return pitch_of(quantize->input);
  if (const auto* dequantize = std::get_if<problem::Dequantize>(&problem.op)) {
    if (name == "q") return pitch_of(dequantize->q);
    if (name == "x") return dequantize->output_pitch;
  }
  if (const auto* pack = std::get_if<problem::PackScales>(&problem.op))
    if (name == "s") return pack->pitch;
  if (const auto* pad = std::get_if<problem::PadGroups>(&problem.op))
    if (name == "x") return pitch_of(pad->input);
  if (const auto* gemm = std::get_if<problem::Gemm>(&problem.op)) {
    if (name == "a") return pitch_of(gemm->a.tensor);
    if (name == "b") return pitch_of(gemm->b.tensor);
    if (name == "d") return pitch_of(gemm->d.tensor);
  }
  return std::nullopt;
}

}  // namespace

PlacedTensors place(const driver::Api& api, const problem::Problem& problem, CUstream stream) {
  PlacedTensors placed;
  for (const problem::TensorDecl& decl : problem::tensors(problem)) {
    if (decl.optional) continue;
    Tensor tensor{.data = nullptr, .dtype = decl.dtype, .rank = static_cast<int>(decl.shape.size())};
    std::copy(decl.shape.begin(), decl.shape.end(), tensor.shape.begin());
    std::int64_t elements = decl.shape.back(), offset = 0;
    if (const auto promised = promises(problem, decl.name)) {
      elements = tensor.pitch = *promised->ld;
      // Memory comes aligned to more than is promised; less than an element no tensor may be.
      if (*promised->align < 16)
        offset = std::max<std::int64_t>(*promised->align, static_cast<std::int64_t>(size_of(decl.dtype)));
    }
    for (std::size_t i = 0; i + 1 < decl.shape.size(); ++i) elements *= decl.shape[i];
    const std::size_t bytes = static_cast<std::size_t>(elements) * size_of(decl.dtype);
    driver::DeviceBuffer buffer(api, bytes == 0 ? 0 : bytes + static_cast<std::size_t>(offset));
    buffer.fill(0, stream);
    if (bytes != 0) tensor.data = static_cast<char*>(buffer.data()) + offset;
    placed.tensors[decl.name] = tensor;
    placed.buffers[decl.name] = std::move(buffer);
  }
  return placed;
}

}  // namespace mxjit::dispatch
