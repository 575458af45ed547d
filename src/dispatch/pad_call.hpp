// A call of pad_groups or unpad_groups.
#pragma once

#include "configure/moves.hpp"
#include "dispatch/op_call.hpp"
#include "mxjit/pad.hpp"

namespace mxjit::dispatch {

/// Keeps references to what it is made of.
class PadCall final : public OpCall {
 public:
  PadCall(const PadGroupsOptions& options, const PadGroupsArgs& args)
      : unpad_(false),
        options_(options),
        tensors_{{{"x", &args.x},
                  {"offsets", &args.offsets},
                  {"x_padded", &args.x_padded, true},
                  {"starts", &args.starts, true},
                  {"status", &args.status, true},
                  {"ends", &args.ends, true}}} {}
  PadCall(const PadGroupsOptions& options, const UnpadGroupsArgs& args)
      : unpad_(true),
        options_(options),
        tensors_{{{"x", &args.x, true},
                  {"offsets", &args.offsets},
                  {"x_padded", &args.x_padded},
                  {"starts", &args.starts},
                  {"status", &args.status, true}}} {}

  void check() const override;
  bool has_work() const noexcept override;
  OpKey key() const noexcept override { return {{'p', static_cast<std::uint8_t>(unpad_)}}; }
  configure::Configuration configuration() const override { return configure::pad_configuration(unpad_); }
  problem::Problem problem() const override;
  std::span<const NamedTensor> tensors() const noexcept override {
    return std::span(tensors_).first(unpad_ ? 5 : 6);
  }
  void launch(const OpPlan& plan, CUstream stream) const override;

 private:
  enum Index : std::size_t { x, offsets, x_padded, starts, status, ends };
  const Tensor& tensor(Index index) const noexcept { return *tensors_[index].tensor; }

  const bool unpad_;
  const PadGroupsOptions& options_;
  const std::array<NamedTensor, 6> tensors_;
};

}  // namespace mxjit::dispatch
