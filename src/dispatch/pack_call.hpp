// A call of pack_scales or unpack_scales.
#pragma once

#include "configure/moves.hpp"
#include "dispatch/op_call.hpp"
#include "mxjit/scales.hpp"

namespace mxjit::dispatch {

/// Keeps references to both.
class PackCall final : public OpCall {
 public:
  PackCall(bool unpack, const PackScalesOptions& options, const PackScalesArgs& args)
      : unpack_(unpack), options_(options), args_(args) {}

  void check() const override;
  bool has_work() const noexcept override;
  OpKey key() const noexcept override;
  configure::Configuration configuration() const override {
    return configure::pack_configuration(unpack_, options_.placement);
  }
  problem::Problem problem() const override;
  std::span<const NamedTensor> tensors() const noexcept override { return tensors_; }
  void launch(const OpPlan& plan, CUstream stream) const override;

 private:
  bool grouped() const noexcept {
    return options_.placement == Placement::m_groups || options_.placement == Placement::k_groups;
  }

  const bool unpack_;
  const PackScalesOptions& options_;
  const PackScalesArgs& args_;
  const std::array<NamedTensor, 4> tensors_{{{"s", &args_.s, unpack_},
                                             {"s_blocked", &args_.s_blocked, !unpack_},
                                             {"offsets", &args_.offsets},
                                             {"status", &args_.status, true}}};
};

}  // namespace mxjit::dispatch
