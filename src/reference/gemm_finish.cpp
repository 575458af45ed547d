// From sums to the outputs of a GEMM: everything in double, rounded once.
#include <algorithm>
#include <cmath>

#include "reference/fp8.hpp"
#include "reference/gemm.hpp"
#include "reference/matrix.hpp"
#include "reference/pre.hpp"
#include "reference/quantize.hpp"

namespace mxjit::reference {
namespace {

std::int64_t matrices_rows(const HostTensor& d) {
  std::int64_t rows = 1;
  for (std::size_t i = 0; i + 1 < d.shape.size(); ++i) rows *= d.shape[i];
  return rows;
}

// e4m3 by a scale that decodes: one for everything, or one a row.
void store_by_scale(const Matrix& high, const HostTensor& scale, HostTensor& d) {
  for (std::int64_t r = 0; r < high.rows; ++r) {
    const float factor = 1.0F / read_as<float>(scale, scale.elements() == 1 ? 0 : r);
    for (std::int64_t c = 0; c < high.cols; ++c) {
      const float value = static_cast<float>(high.row(r)[c]) * factor;
      d.bytes[static_cast<std::size_t>(r * high.cols + c)] = encode_fp8(fp8_format(d.dtype), value);
    }
  }
}

}  // namespace

Finisher::Finisher(const problem::Gemm& op, const TensorMap& inputs, TensorMap& outputs)
    : op_(op),
      inputs_(inputs),
      outputs_(outputs),
      n_(extent(op.b.tensor.shape, 1)),
      high_(matrices_rows(outputs.at("d")), outputs.at("d").shape.back()) {}

void Finisher::row(std::int64_t row, std::int64_t group, const double* sums) {
  const HostTensor* bias = op_.bias ? &inputs_.at("bias") : nullptr;
  const std::int64_t bias_row = bias != nullptr && bias->shape.size() == 2 ? group : 0;
  std::vector<double> values(static_cast<std::size_t>(n_));
  for (std::int64_t c = 0; c < n_; ++c) {
    double value = op_.alpha * sums[c];
    if (op_.beta != 0.0) {
      const HostTensor& previous = inputs_.at("c");
      value += op_.beta * element(previous.dtype, previous.bytes.data(), row * n_ + c);
    }
    if (bias != nullptr) value += element(bias->dtype, bias->bytes.data(), bias_row * n_ + c);
    values[static_cast<std::size_t>(c)] = value;
  }
  double* out = high_.row(row);
  for (std::int64_t c = 0; c < high_.cols; ++c) {
    out[c] = values[static_cast<std::size_t>(c)];
    if (op_.epilogue) {
      const problem::Swiglu& p = *op_.epilogue;
      out[c] = swiglu(p, values[static_cast<std::size_t>(gate_column(p, c))],
                      values[static_cast<std::size_t>(up_column(p, c, high_.cols))]);
    }
  }
}

void Finisher::finish(const std::vector<std::int64_t>& ends) {
  HostTensor& d = outputs_.at("d");
  if (op_.d.amax) {
    double largest = 0.0;  // of the values before they are rounded to d; NaN where there is one
    for (const double value : high_.values) {
      if (std::isnan(value) || std::fabs(value) > largest) largest = std::fabs(value);
      if (std::isnan(value)) break;
    }
    write_as(outputs_.at("amax"), 0, static_cast<float>(largest));
  }
  if (op_.d.requant) {
    std::vector<std::int64_t> shape = d.shape;
    HostTensor single = make_tensor(DType::fp32, shape);
    for (std::size_t i = 0; i < high_.values.size(); ++i) {
      write_as(single, static_cast<std::int64_t>(i), static_cast<float>(high_.values[i]));
    }
    const std::int64_t experts = d.shape.size() == 3 ? d.shape[0] : 1;
    const Source source{single, experts, d.shape[d.shape.size() - 2], high_.cols, false};
    std::optional<RowGroups> groups;
    if (op_.groups && op_.groups->kind == problem::GemmGroupKind::m) groups = RowGroups{ends, 1};
    quantize_axis(*op_.d.requant, source, groups, false, d, outputs_.at("d_scales"));
  } else if (d.dtype == DType::e4m3) {
    store_by_scale(high_, inputs_.at("d_scale"), d);
  } else {
    for (std::size_t i = 0; i < high_.values.size(); ++i) {
      store(d.dtype, d.bytes.data(), static_cast<std::int64_t>(i), high_.values[i]);
    }
  }
}

}  // namespace mxjit::reference
