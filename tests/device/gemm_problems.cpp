#include "device/gemm_problems.hpp"

#include <cmath>
#include <cstring>
#include <limits>

namespace mxjit::device {
namespace {

template <typename T>
T bits_at(const HostTensor& tensor, std::size_t index) {
  T value;
  std::memcpy(&value, tensor.bytes.data() + index * sizeof(T), sizeof(T));
  return value;
}

double half_value(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
  double value = exponent == 0    ? std::ldexp(mantissa, -24)
                 : exponent == 31 ? (mantissa != 0 ? NAN : INFINITY)
                                  : std::ldexp(1024 + mantissa, exponent - 25);
  return (bits & 0x8000) != 0 ? -value : value;
}

std::uint64_t pattern(DType dtype, bool scale, Random& random) {
  const std::uint64_t draw = random(), sign = draw >> 63;
  switch (dtype) {
    case DType::e4m3:  // 2^-4 to 2^3
      return sign << 7 | (3 * 8 + draw % 64);
    case DType::e5m2:
      return sign << 7 | (11 * 4 + draw % 32);
    case DType::bf16:
      return sign << 15 | (124 * 128 + draw % 1024);
    case DType::fp16:
      return sign << 15 | (12 * 1024 + draw % 8192);
    case DType::fp32:  // factors are positive and close to 1
      return (scale ? 0 : sign << 31) | (std::uint64_t{126} << 23 | draw % (1 << 24));
    default:  // scale codes
      return 122 + draw % 10;
  }
}

}  // namespace

std::optional<problem::OperandScaling> scaling(const std::string& name) {
  problem::OperandScaling made{.kind = Scaling::fp32, .block = {}};
  const std::string base = name.substr(0, name.find(' '));
  if (base == "none") return std::nullopt;
  if (base == "tensor") made.block = {.kind = Block::Kind::tensor};
  if (base == "row") made.block = {.kind = Block::Kind::row};
  if (base == "k") made.block = {.kind = Block::Kind::k};
  if (base == "128") made.block = {.rows = 1, .cols = 128};
  if (base == "128x128" || base == "mx128x128") made.block = {.rows = 128, .cols = 128};
  if (base == "mx32") made.block = {.rows = 1, .cols = 32};
  if (base == "mx128") made.block = {.rows = 1, .cols = 128};
  if (base == "mx32x32") made.block = {.rows = 32, .cols = 32};
  if (base.starts_with("mx")) made.kind = Scaling::mx;
  if (name.ends_with(" mn")) made.layout = ScaleLayout::mn_major;
  if (name.ends_with(" blocked")) made.layout = ScaleLayout::blocked;
  return made;
}

problem::Gemm make_gemm(std::int64_t m, std::int64_t n, std::int64_t k, const std::string& a_scaling,
                        const std::string& b_scaling, Accumulation accumulation, DType d) {
  problem::Gemm gemm;
  gemm.a.tensor = {.dtype = DType::e4m3, .shape = {m, k}, .ld = {}, .align = {}};
  gemm.b.tensor = {.dtype = DType::e4m3, .shape = {n, k}, .ld = {}, .align = {}};
  gemm.a.scaling = scaling(a_scaling);
  gemm.b.scaling = scaling(b_scaling);
  gemm.accumulation = accumulation;
  gemm.d.tensor.dtype = d;
  return gemm;
}

std::vector<problem::Problem> problems_of(const std::vector<problem::Gemm>& gemms) {
  std::vector<problem::Problem> made;
  for (const problem::Gemm& gemm : gemms) made.push_back(whole(gemm));
  return made;
}

TensorMap gemm_inputs(const problem::Problem& problem, Random& random) {
  TensorMap inputs;
  for (const problem::TensorDecl& decl : problem::tensors(problem)) {
    if (decl.output) continue;
    HostTensor tensor{.dtype = decl.dtype, .shape = decl.shape, .bytes = {}};
    const std::size_t element = size_of(decl.dtype);
    const auto count = static_cast<std::size_t>(tensor.elements());
    tensor.bytes.resize(count * element);
    const bool scale = decl.name.ends_with("_scale");
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint64_t bits = pattern(decl.dtype, scale, random);
      std::memcpy(tensor.bytes.data() + i * element, &bits, element);
    }
    inputs[decl.name] = std::move(tensor);
  }
  return inputs;
}

double value_of(const HostTensor& tensor, std::size_t index) {
  switch (tensor.dtype) {
    case DType::fp32:
      return static_cast<double>(bits_at<float>(tensor, index));
    case DType::fp16:
      return half_value(bits_at<std::uint16_t>(tensor, index));
    default: {
      const std::uint32_t bits = std::uint32_t{bits_at<std::uint16_t>(tensor, index)} << 16;
      float value = 0.0F;
      std::memcpy(&value, &bits, sizeof value);
      return static_cast<double>(value);
    }
  }
}

double relative_error(const HostTensor& got, const HostTensor& expected) {
  double error = 0.0, norm = 0.0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(expected.elements()); ++i) {
    const double have = value_of(got, i), want = value_of(expected, i);
    if (std::isnan(have) != std::isnan(want)) return std::numeric_limits<double>::infinity();
    if (std::isnan(want)) continue;
    if (have != want) error += (have - want) * (have - want);  // equal infinities differ by nothing
    if (std::isfinite(want)) norm += want * want;
  }
  return error == 0.0 ? 0.0 : std::sqrt(error / norm);
}

double rounding_tolerance(const problem::Gemm& gemm) {  // half a unit in the last place at most
  const DType d = gemm.d.tensor.dtype;
  return d == DType::bf16 ? 0x1p-9 : d == DType::fp16 ? 0x1p-12 : 0x1p-24;
}

double sum_tolerance(const problem::Gemm& gemm) {
  switch (gemm.accumulation) {
    case Accumulation::exact:
      return 1e-6;
    case Accumulation::promote:
      return 0x1.2p-12;  // 2^-12, and what a few hundred elements scatter
    case Accumulation::fast:
      break;
  }
  return 1e-2;
}

double tolerance(const problem::Gemm& gemm) { return rounding_tolerance(gemm) + sum_tolerance(gemm); }

}  // namespace mxjit::device
