#include "bench/gemm_case.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "codegen/descriptor.hpp"
#include "configure/configure.hpp"
#include "reference/reference.hpp"

namespace mxjit::bench {
namespace {

using Kind = Block::Kind;

problem::OperandScaling scaling(const Block& block, ScaleLayout layout = ScaleLayout::plain) {
  return {.kind = Scaling::fp32, .block = block, .layout = layout};
}

// Indices in [0, extent), in groups of eight that reach from the first to the last.
std::vector<std::int64_t> spread(std::int64_t extent) {
  constexpr std::int64_t count = 64, group = 8;
  std::vector<std::int64_t> all;
  if (extent <= count) {
    for (std::int64_t i = 0; i < extent; ++i) all.push_back(i);
    return all;
  }
  for (std::int64_t i = 0; i < count; ++i)
    all.push_back(i / group * (extent - group) / (count / group - 1) + i % group);
  return all;
}

HostTensor gather_rows(const std::string& name, const std::vector<std::int64_t>& rows, std::int64_t row_bytes,
                       DType dtype, const ReadBytes& read) {
  HostTensor tensor{.dtype = dtype,
                    .shape = {static_cast<std::int64_t>(rows.size()),
                              row_bytes / static_cast<std::int64_t>(size_of(dtype))},
                    .bytes = {}};
  for (const std::int64_t row : rows) {
    const std::vector<std::uint8_t> bytes = read(name, row * row_bytes, row_bytes);
    tensor.bytes.insert(tensor.bytes.end(), bytes.begin(), bytes.end());
  }
  return tensor;
}

// The scales of the gathered rows, in the plain form of one a row or of one a 1 x 128 block.
HostTensor gather_scales(const std::string& name, const problem::OperandScaling& scaling,
                         const std::vector<std::int64_t>& rows, std::int64_t extent, std::int64_t k,
                         const ReadBytes& read) {
  constexpr std::int64_t element = 4;
  HostTensor tensor{.dtype = DType::fp32, .shape = {1}, .bytes = {}};
  if (scaling.block.kind == Kind::tensor) {
    tensor.bytes = read(name, 0, element);
    return tensor;
  }
  const auto count = static_cast<std::int64_t>(rows.size()), blocks = (k + 127) / 128;
  tensor.shape = {count};
  if (scaling.block.kind == Kind::extents) tensor.shape.push_back(blocks);
  for (const std::int64_t row : rows)
    for (std::int64_t block = 0; block < (scaling.block.kind == Kind::extents ? blocks : 1); ++block) {
      std::int64_t at = row;
      if (scaling.block.kind == Kind::extents)
        at = scaling.layout == ScaleLayout::mn_major ? block * ((extent + 3) / 4 * 4) + row
                                                     : row / scaling.block.rows * blocks + block;
      const std::vector<std::uint8_t> bytes = read(name, at * element, element);
      tensor.bytes.insert(tensor.bytes.end(), bytes.begin(), bytes.end());
    }
  return tensor;
}

problem::OperandScaling plain(problem::OperandScaling scaling) {
  scaling.layout = ScaleLayout::plain;
  if (scaling.block.kind == Kind::extents) scaling.block.rows = 1;
  return scaling;
}

double widen(const std::uint8_t* bf16) {
  std::uint32_t bits = 0;
  std::memcpy(reinterpret_cast<std::uint8_t*>(&bits) + 2, bf16, 2);
  float value = 0.0F;
  std::memcpy(&value, &bits, sizeof value);
  return static_cast<double>(value);
}

}  // namespace

std::vector<GemmCase> gemm_cases(std::int64_t m, std::int64_t n, std::int64_t k) {
  std::vector<GemmCase> cases;
  const auto add = [&](const char* name, problem::OperandScaling a, problem::OperandScaling b,
                       Accumulation accumulation, PeerScaling peer) {
    problem::Gemm gemm;
    gemm.a.tensor = {.dtype = DType::e4m3, .shape = {m, k}, .ld = {}, .align = {}};
    gemm.b.tensor = {.dtype = DType::e4m3, .shape = {n, k}, .ld = {}, .align = {}};
    gemm.a.scaling = a;
    gemm.b.scaling = b;
    gemm.accumulation = accumulation;
    gemm = std::get<problem::Gemm>(problem::with_defaults({"", gemm}).op);
    cases.push_back({fmt::format("{} {}x{}x{}", name, m, n, k), gemm, peer});
  };
  const auto tensor = scaling({.kind = Kind::tensor}), row = scaling({.kind = Kind::row});
  add("tensor_fast", tensor, tensor, Accumulation::fast, PeerScaling::tensor);
  add("rowwise_fast", row, row, Accumulation::fast, PeerScaling::row);
  add("tensor_promote", tensor, tensor, Accumulation::promote, PeerScaling::tensor);
  add("rowwise_promote", row, row, Accumulation::promote, PeerScaling::row);
  add("block", scaling({.rows = 1, .cols = 128}, ScaleLayout::mn_major), scaling({.rows = 128, .cols = 128}),
      Accumulation::promote, PeerScaling::block);
  return cases;
}

double moved_bytes(const GemmCase& gemm_case) {
  double bytes = 0;
  for (const problem::TensorDecl& decl : problem::tensors({"", gemm_case.gemm})) {
    auto one = static_cast<double>(size_of(decl.dtype));
    for (const std::int64_t extent : decl.shape) one *= static_cast<double>(extent);
    bytes += one;
  }
  return bytes;
}

std::string configuration_json(const GemmCase& gemm_case, const std::string& profile) {
  const configure::Profile& named = configure::profile(profile);
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const configure::Configuration& configuration : configure::configure({"", gemm_case.gemm}, named))
    all.push_back(nlohmann::ordered_json::parse(codegen::print({configuration, std::string(named.target)})));
  return all.dump();
}

std::string difference_from_reference(const GemmCase& gemm_case, const ReadBytes& read) {
  const problem::Gemm& whole = gemm_case.gemm;
  const std::int64_t m = whole.a.tensor.shape[0].max, k = whole.a.tensor.shape[1].max,
                     n = whole.b.tensor.shape[0].max;
  const std::vector<std::int64_t> rows = spread(m), columns = spread(n);
  problem::Gemm part = whole;
  part.a.tensor = {.dtype = whole.a.tensor.dtype,
                   .shape = {static_cast<std::int64_t>(rows.size()), k},
                   .ld = {},
                   .align = {}};
  part.b.tensor = {.dtype = whole.b.tensor.dtype,
                   .shape = {static_cast<std::int64_t>(columns.size()), k},
                   .ld = {},
                   .align = {}};
  part.a.scaling = plain(*whole.a.scaling);
  part.b.scaling = plain(*whole.b.scaling);
  part.d.tensor = {.dtype = DType::fp32, .shape = {}, .ld = {}, .align = {}};
  TensorMap inputs;
  inputs["a"] = gather_rows("a", rows, k, part.a.tensor.dtype, read);
  inputs["b"] = gather_rows("b", columns, k, part.b.tensor.dtype, read);
  inputs["a_scale"] = gather_scales("a_scale", *whole.a.scaling, rows, m, k, read);
  inputs["b_scale"] = gather_scales("b_scale", *whole.b.scaling, columns, n, k, read);
  const HostTensor expected = reference::run(problem::with_defaults({"", part}), inputs).at("d");
  double error = 0, norm = 0;
  std::size_t at = 0;
  for (const std::int64_t row : rows) {
    const std::vector<std::uint8_t> d = read("d", row * n * 2, n * 2);
    for (const std::int64_t column : columns) {
      float want = 0.0F;
      std::memcpy(&want, expected.bytes.data() + at++ * sizeof want, sizeof want);
      const double off = widen(d.data() + column * 2) - static_cast<double>(want);
      error += off * off;
      norm += static_cast<double>(want) * static_cast<double>(want);
    }
  }
  // One rounding to bf16, and the accumulation's own error.
  const double allowed = 0x1p-9 + (whole.accumulation == Accumulation::fast ? 1e-2 : 0x1p-12);
  const double distance = std::sqrt(error / norm);
  if (distance <= allowed) return {};  // false for NaN
  return fmt::format("relative distance {:.3g} from the reference, allowed {:.3g}", distance, allowed);
}

}  // namespace mxjit::bench
