#include "device/gemm_compare.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "reference/fp8.hpp"
#include "reference/gemm.hpp"
#include "reference/pre.hpp"
#include "reference/reference.hpp"

namespace mxjit::device {
namespace {

using problem::Gemm;

std::int64_t matrices(const problem::Operand& operand) {
  const problem::Shape& shape = operand.tensor.shape;
  return shape.size() == 3 ? shape[0].max : 1;
}

// Calls visit(row, contraction index, square) for the finite values of one of an operand's matrices.
template <class Visit>
void each_square(const problem::Operand& declared, const TensorMap& inputs, const std::string& name,
                 std::int64_t index, const Visit& visit) {
  const problem::Shape& shape = declared.tensor.shape;
  const std::int64_t rows = shape[shape.size() - 2].max, k = shape.back().max;
  const HostTensor* scales = declared.scaling ? &inputs.at(name + "_scale") : nullptr;
  reference::OperandData data(declared, inputs.at(name), scales, std::nullopt, {});
  std::vector<std::int64_t> all(static_cast<std::size_t>(rows));
  std::iota(all.begin(), all.end(), std::int64_t{0});
  const reference::Matrix values = data.decode_rows(index, all, 0, k, 0);
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t i = 0; i < k; ++i) {
      const double value = values.row(r)[i];
      if (std::isfinite(value))
        visit(static_cast<std::size_t>(r), static_cast<std::size_t>(i), value * value);
    }
}

// The mean over an operand's rows of the squares of its values, for each contraction index.
std::vector<double> mean_squares(const problem::Operand& declared, const TensorMap& inputs,
                                 const std::string& name, std::int64_t index) {
  const problem::Shape& shape = declared.tensor.shape;
  const auto rows = static_cast<double>(shape[shape.size() - 2].max);
  std::vector<double> means(static_cast<std::size_t>(shape.back().max));
  each_square(declared, inputs, name, index,
              [&](std::size_t, std::size_t k, double square) { means[k] += square / rows; });
  return means;
}

// How much larger an operand's rows are than all of them, in the root mean square; matrix after matrix.
std::vector<double> row_shares(const problem::Operand& declared, const TensorMap& inputs,
                               const std::string& name) {
  const problem::Shape& shape = declared.tensor.shape;
  const auto rows = static_cast<std::size_t>(shape[shape.size() - 2].max);
  std::vector<double> shares;
  for (std::int64_t i = 0; i < matrices(declared); ++i) {
    std::vector<double> sums(rows);
    each_square(declared, inputs, name, i,
                [&](std::size_t row, std::size_t, double square) { sums[row] += square; });
    shares.insert(shares.end(), sums.begin(), sums.end());
  }
  const double mean = std::accumulate(shares.begin(), shares.end(), 0.0) /
                      static_cast<double>(std::max<std::size_t>(1, shares.size()));
  for (double& share : shares) share = mean > 0.0 ? std::sqrt(share / mean) : 0.0;
  return shares;
}

// What alpha times a sum of the products is like: its root mean square, had the terms signs of chance.
double typical_sum(const Gemm& gemm, const TensorMap& inputs) {
  const std::int64_t of_a = matrices(gemm.a), of_b = matrices(gemm.b), count = of_a == 1 ? of_b : of_a;
  double squares = 0.0;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::vector<double> a = mean_squares(gemm.a, inputs, "a", of_a == 1 ? 0 : i);
    const std::vector<double> b = mean_squares(gemm.b, inputs, "b", of_b == 1 ? 0 : i);
    squares += std::inner_product(a.begin(), a.end(), b.begin(), 0.0) / static_cast<double>(count);
  }
  return std::fabs(gemm.alpha) * std::sqrt(squares);
}

// How much each value of D moves with the sums that it is made of: 1, or what SwiGLU makes of that.
std::vector<double> sensitivities(const Gemm& gemm, const TensorMap& inputs, const TensorMap& want) {
  std::vector<double> of(static_cast<std::size_t>(want.at("d").elements()), 1.0);
  if (!gemm.epilogue || of.empty()) return of;
  Gemm products = gemm;
  products.epilogue.reset();
  products.d = {};
  products.d.tensor.dtype = DType::fp32;
  const HostTensor sums = reference::run(whole(products), inputs).at("d");
  const problem::Swiglu& p = *gemm.epilogue;
  const std::int64_t columns = want.at("d").shape.back();
  for (std::size_t i = 0; i < of.size(); ++i) {
    const auto row = static_cast<std::int64_t>(i) / columns, column = static_cast<std::int64_t>(i) % columns;
    const auto at = [&](std::int64_t c) {
      return value_of(sums, static_cast<std::size_t>(row * 2 * columns + c));
    };
    const double gate = at(reference::gate_column(p, column));
    const double up = at(reference::up_column(p, column, columns)) + (p.limit ? 1.0 : 0.0);
    // No slope of gate * sigmoid is above 1.1.
    of[i] = std::hypot(1.1 * up, gate / (1.0 + std::exp(-p.alpha * gate)));
    if (!std::isfinite(of[i])) of[i] = 0.0;
  }
  return of;
}

// The place of an e4m3 code among all, in the order of their values.
int rank_of(std::uint8_t code) { return (code & 0x80) != 0 ? -(code & 0x7F) : code & 0x7F; }

bool is_nan(std::uint8_t code) { return (code & 0x7F) == 0x7F; }

double e4m3(std::uint8_t code) { return static_cast<double>(reference::decode_fp8(DType::e4m3, code)); }

// What D's codes stand for, by the reference, whatever the layout of its scales.
std::vector<double> decoded(const Gemm& gemm, const TensorMap& inputs, const TensorMap& outputs) {
  const HostTensor& d = outputs.at("d");
  std::vector<double> values(d.bytes.size());
  if (!gemm.d.requant) {
    const HostTensor& scales = inputs.at("d_scale");
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::size_t row = i / static_cast<std::size_t>(d.shape.back());
      values[i] = e4m3(d.bytes[i]) * value_of(scales, scales.elements() == 1 ? 0 : row);
    }
    return values;
  }
  problem::Dequantize op;
  const problem::Recipe& recipe = *gemm.d.requant;
  op.q.dtype = DType::e4m3;
  for (const std::int64_t extent : d.shape) op.q.shape.emplace_back(extent);
  op.scaling = recipe.scaling;
  op.block = recipe.block;
  op.scale_layout = recipe.scale_layout;
  op.output = DType::fp32;
  const TensorMap coded{{"q", d}, {"s", outputs.at("d_scales")}};
  const HostTensor x = reference::run(whole(op), coded).at("x");
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = value_of(x, i);
  return values;
}

double root_mean_square(const std::vector<double>& values) {
  double squares = 0.0;
  std::size_t count = 0;
  for (const double value : values)
    if (std::isfinite(value)) squares += value * value, ++count;
  return count == 0 ? 0.0 : std::sqrt(squares / static_cast<double>(count));
}

class Comparison {
 public:
  Comparison(const Gemm& gemm, const TensorMap& inputs, const TensorMap& got, const TensorMap& want)
      : gemm_(gemm), inputs_(inputs), got_(got), want_(want), typical_(typical_sum(gemm, inputs)) {
    sensitivity_ = sensitivities(gemm, inputs, want);
    find_shares();
    // The error of a handful of values scatters about what it is on average.
    const auto count = static_cast<double>(sensitivity_.size());
    tolerance_ = sum_tolerance(gemm) * (1.0 + 4.0 / std::sqrt(std::max(1.0, count)));
  }

  std::string run() {
    if (got_.size() != want_.size()) return "not every output";
    std::string found;
    if (gemm_.d.requant) found = of_scales();
    if (found.empty()) found = gemm_.d.tensor.dtype == DType::e4m3 ? of_codes() : of_values();
    if (found.empty() && gemm_.d.amax) found = of_amax();
    return found;
  }

 private:
  // Of one value rather than of all.
  double furthest(std::size_t i) const { return 6.0 * tolerance_ * typical_ * share_[i] * sensitivity_[i]; }
  // How much larger the sums of each value of D are than the typical one.
  void find_shares() {
    const std::vector<double> a = row_shares(gemm_.a, inputs_, "a"), b = row_shares(gemm_.b, inputs_, "b");
    const auto rows = [](const problem::Operand& operand) {
      return static_cast<std::size_t>(operand.tensor.shape[operand.tensor.shape.size() - 2].max);
    };
    const std::size_t m = rows(gemm_.a), n = rows(gemm_.b);
    const auto columns = static_cast<std::size_t>(want_.at("d").shape.back());
    share_.resize(sensitivity_.size());
    for (std::size_t i = 0; i < share_.size(); ++i) {
      const std::size_t matrix = i / columns / m, row = i / columns % m, column = i % columns;
      const auto of_b = [&](std::size_t c) { return b[(matrix * n + c) % b.size()]; };
      double of_column = of_b(column);
      if (gemm_.epilogue) {
        const auto c = static_cast<std::int64_t>(column), all = static_cast<std::int64_t>(columns);
        of_column = std::max(of_b(static_cast<std::size_t>(reference::gate_column(*gemm_.epilogue, c))),
                             of_b(static_cast<std::size_t>(reference::up_column(*gemm_.epilogue, c, all))));
      }
      share_[i] = a[(matrix * m + row) % a.size()] * of_column;
    }
  }
  // Tensor cores cut sums off, so that a large one loses a share of itself: of the largest, much less than
  // the typical one does.
  double cut_off() const {
    return gemm_.accumulation == Accumulation::exact  ? 1e-5
           : gemm_.accumulation == Accumulation::fast ? 1e-2
                                                      : 0x1p-10;
  }

  std::string of_values() const {
    const HostTensor &got = got_.at("d"), &want = want_.at("d");
    double error = 0.0, norm = 0.0, typical = 0.0, largest = 0.0;
    for (std::size_t i = 0; i < sensitivity_.size(); ++i) {
      const double have = value_of(got, i), right = value_of(want, i);
      if (std::isnan(have) && std::isnan(right)) continue;
      if (have == right) {
        if (std::isfinite(right)) norm += right * right;
      } else if (!std::isfinite(have) || !std::isfinite(right)) {
        return fmt::format("d[{}] is {}, expected {}", i, have, right);
      } else {
        error += (have - right) * (have - right);
        norm += right * right;
        largest = std::max(largest, std::fabs(right));
      }
      typical += typical_ * typical_ * sensitivity_[i] * sensitivity_[i];
    }
    // And one value that lies close to the middle of two, which may become either.
    const double allowed = rounding_tolerance(gemm_) * (std::sqrt(norm) + 4.0 * largest) +
                           tolerance_ * std::sqrt(std::max(norm, typical));
    if (std::sqrt(error) <= allowed) return {};
    return fmt::format("d is off by {}, allowed are {}", std::sqrt(error), allowed);
  }

  // A sum that lies close to the middle of two codes may get either, and codes of small values lie closer to
  // each other than sums do. A wrong factor or place changes nearly every code; a product too many or too few
  // moves a value by some 2^-4 of the typical one.
  std::string of_codes() {
    const std::vector<std::uint8_t>&got = got_.at("d").bytes, &want = want_.at("d").bytes;
    const std::vector<double> have = decoded(gemm_, inputs_, got_), right = decoded(gemm_, inputs_, want_);
    const double close = 0x1p-8 * root_mean_square(right);
    // Of a value by a scale that moved: 496 becomes 448, the most there is, or by twice the scale 512.
    constexpr double furthest_moved = 64.0 / 448.0;
    std::size_t differing = 0;
    for (std::size_t i = 0; i < want.size(); ++i) {
      if (got[i] == want[i] || (is_nan(got[i]) && is_nan(want[i]))) continue;
      ++differing;
      const double distance = std::fabs(have[i] - right[i]);
      const bool neighbours = std::abs(rank_of(got[i]) - rank_of(want[i])) <= 1 ||
                              (moved_ > 0 && distance <= furthest_moved * std::fabs(right[i]));
      if (is_nan(got[i]) || is_nan(want[i]) || (!neighbours && distance > std::max(close, furthest(i))))
        return fmt::format("d[{}] is {} (code {:#04x}), expected {} ({:#04x})", i, have[i], got[i], right[i],
                           want[i]);
    }
    // A value of two sums differs twice as often.
    const std::size_t one_of = gemm_.accumulation == Accumulation::fast ? 16 : 64;
    const std::size_t chance = want.size() / (gemm_.epilogue ? one_of / 2 : one_of) + 2;
    if (differing <= chance + moved_ * 128) return {};
    return fmt::format("{} of {} codes differ", differing, want.size());
  }

  // The scales of D, had every sum been larger, or smaller, by what it may be off.
  HostTensor scales_of_moved_sums(double way) const {
    Gemm products = gemm_;
    products.d = {};
    products.d.tensor.dtype = DType::fp32;
    HostTensor sums = reference::run(whole(products), inputs_).at("d");
    for (std::size_t i = 0; i < sensitivity_.size(); ++i) {
      const double value = value_of(sums, i),
                   magnitude = std::fabs(value) + way * std::max(furthest(i), cut_off() * std::fabs(value));
      const auto moved = static_cast<float>(std::copysign(std::max(0.0, magnitude), value));
      std::memcpy(sums.bytes.data() + i * sizeof moved, &moved, sizeof moved);
    }
    problem::Quantize op;
    op.input.dtype = DType::fp32;
    for (const std::int64_t extent : sums.shape) op.input.shape.emplace_back(extent);
    op.recipe = *gemm_.d.requant;
    return reference::run(whole(op), {{"x", sums}}).at("s_row");
  }

  // Largest magnitudes differ as sums do. A power of two among scales moves where one lies that close to its
  // threshold, and the block's codes with it. Other float scales carry the difference.
  std::string of_scales() {
    const HostTensor &got = got_.at("d_scales"), &want = want_.at("d_scales");
    if (got.bytes == want.bytes) return {};
    const bool floats = want.dtype == DType::fp32 && gemm_.d.requant->rounding == Rounding::none;
    const HostTensor below = scales_of_moved_sums(-1.0), above = scales_of_moved_sums(1.0);
    // Codes compare as they are.
    const auto scale = [](const HostTensor& scales, std::size_t i) {
      return scales.dtype == DType::fp32 ? value_of(scales, i) : static_cast<double>(scales.bytes[i]);
    };
    const auto count = static_cast<std::size_t>(want.elements());
    for (std::size_t i = 0; i < count; ++i) {
      const double have = scale(got, i), right = scale(want, i);
      if (have == right || (std::isnan(have) && std::isnan(right))) continue;
      const double rounding = floats ? 1e-5 * right : 0.0;
      // A block of zeros has a scale of its own, which is not the least.
      const auto [least, most] = std::minmax({scale(below, i), right, scale(above, i)});
      if (!(have >= least - rounding && have <= most + rounding))
        return fmt::format("d_scales[{}] is {}, expected {}, from {} to {}", i, have, right, least, most);
      if (!floats) ++moved_;
    }
    return {};
  }

  std::string of_amax() const {
    const double have = value_of(got_.at("amax"), 0), right = value_of(want_.at("amax"), 0);
    if (have == right || (std::isnan(have) && std::isnan(right))) return {};
    double slack = 0.0;
    for (const double sensitivity : sensitivity_)
      slack = std::max(slack, 6.0 * tolerance_ * typical_ * sensitivity);
    if (std::fabs(have - right) <= std::max(cut_off() * right, slack)) return {};
    return fmt::format("amax is {}, expected {}", have, right);
  }

  const Gemm& gemm_;
  const TensorMap &inputs_, &got_, &want_;
  double typical_, tolerance_ = 0.0;
  std::size_t moved_ = 0;  // scales of d
  std::vector<double> sensitivity_, share_;
};

}  // namespace

std::string gemm_difference(const Gemm& gemm, const TensorMap& inputs, const TensorMap& got,
                            const TensorMap& want) {
  return Comparison(gemm, inputs, got, want).run();
}

void expect_outputs(const Gemm& gemm, const TensorMap& inputs, const Placement& placement) {
  const problem::Problem problem = whole(gemm);
  SCOPED_TRACE(problem::print(problem));
  const TensorMap want = reference::run(problem, inputs);
  EXPECT_EQ(gemm_difference(gemm, inputs, run_guarded(problem, inputs, placement), want), "");
}

void scale_rows(const Gemm& gemm, TensorMap& inputs, Random& random) {
  const problem::Problem problem = whole(gemm);
  for (const problem::TensorDecl& decl : problem::tensors(problem)) {
    if (decl.name != "d_scale") continue;
    HostTensor& scales = inputs.at("d_scale");
    scales.shape = decl.also_shapes.at(0);
    const auto count = static_cast<std::size_t>(scales.elements());
    scales.bytes.resize(count * sizeof(float));
    for (std::size_t i = 0; i < count; ++i) {
      const float scale = 0.5F + static_cast<float>(random() % 4096) / 1024.0F;
      std::memcpy(scales.bytes.data() + i * sizeof scale, &scale, sizeof scale);
    }
  }
}

}  // namespace mxjit::device
