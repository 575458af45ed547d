// A call of dequantize.
#pragma once

#include "configure/moves.hpp"
#include "dispatch/op_call.hpp"
#include "mxjit/dequantize.hpp"

namespace mxjit::dispatch {

/// Keeps references to both.
class DequantizeCall final : public OpCall {
 public:
  DequantizeCall(const DequantizeOptions& options, const DequantizeArgs& args)
      : options_(options), args_(args) {}

  void check() const override;
  bool has_work() const noexcept override;
  OpKey key() const noexcept override;
  configure::Configuration configuration() const override { return dequantize_configuration(traits()); }
  problem::Problem problem() const override;
  std::span<const NamedTensor> tensors() const noexcept override { return tensors_; }
  void launch(const OpPlan& plan, CUstream stream) const override;

 private:
  configure::DequantizeTraits traits() const noexcept;
  ScaleShape scales(std::int64_t experts, std::int64_t across, std::int64_t along) const;

  const DequantizeOptions& options_;
  const DequantizeArgs& args_;
  const std::array<NamedTensor, 5> tensors_{{{"q", &args_.q},
                                             {"s", &args_.s},
                                             {"x", &args_.x, true},
                                             {"offsets", &args_.offsets},
                                             {"status", &args_.status, true}}};
};

}  // namespace mxjit::dispatch
