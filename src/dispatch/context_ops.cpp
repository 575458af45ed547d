// The entries of the ops that are one kernel each, and their held plans.
#include <fmt/format.h>

#include "dispatch/context_state.hpp"
#include "dispatch/dequantize_call.hpp"
#include "dispatch/pack_call.hpp"
#include "dispatch/pad_call.hpp"

namespace mxjit {

using dispatch::DequantizeCall;
using dispatch::PackCall;
using dispatch::PadCall;

namespace {

void check_planned(const char* name, DType came, DType planned) {
  if (came != planned) [[unlikely]]
    dispatch::refuse(name, fmt::format("dtype {}, as planned", to_string(planned)),
                     std::string(to_string(came)));
}

}  // namespace

// ---- dequantize

void Context::dequantize(const DequantizeOptions& options, const DequantizeArgs& args, Stream stream) {
  state_->run(DequantizeCall(options, args), stream);
}

DequantizePlan Context::plan(const DequantizeOptions& options, const DequantizeArgs& args) {
  auto plan = state_->plan(DequantizeCall(options, args));
  return DequantizePlan(std::make_shared<DequantizePlan::State>(
      DequantizePlan::State{options, args.q.dtype, args.x.dtype, std::move(plan)}));
}

void DequantizePlan::launch(const DequantizeArgs& args, Stream stream) const {
  check_planned("q", args.q.dtype, state_->q);
  check_planned("x", args.x.dtype, state_->x);
  dispatch::launch_held(*state_->plan, DequantizeCall(state_->options, args), stream);
}

// ---- pack_scales, unpack_scales

void Context::pack_scales(const PackScalesOptions& options, const PackScalesArgs& args, Stream stream) {
  state_->run(PackCall(false, options, args), stream);
}

void Context::unpack_scales(const PackScalesOptions& options, const PackScalesArgs& args, Stream stream) {
  state_->run(PackCall(true, options, args), stream);
}

PackScalesPlan Context::plan_pack_scales(const PackScalesOptions& options, const PackScalesArgs& args) {
  auto plan = state_->plan(PackCall(false, options, args));
  return PackScalesPlan(
      std::make_shared<PackScalesPlan::State>(PackScalesPlan::State{false, options, std::move(plan)}));
}

PackScalesPlan Context::plan_unpack_scales(const PackScalesOptions& options, const PackScalesArgs& args) {
  auto plan = state_->plan(PackCall(true, options, args));
  return PackScalesPlan(
      std::make_shared<PackScalesPlan::State>(PackScalesPlan::State{true, options, std::move(plan)}));
}

void PackScalesPlan::launch(const PackScalesArgs& args, Stream stream) const {
  dispatch::launch_held(*state_->plan, PackCall(state_->unpack, state_->options, args), stream);
}

// ---- pad_groups, unpad_groups

void Context::pad_groups(const PadGroupsOptions& options, const PadGroupsArgs& args, Stream stream) {
  state_->run(PadCall(options, args), stream);
}

void Context::unpad_groups(const PadGroupsOptions& options, const UnpadGroupsArgs& args, Stream stream) {
  state_->run(PadCall(options, args), stream);
}

PadGroupsPlan Context::plan(const PadGroupsOptions& options, const PadGroupsArgs& args) {
  auto plan = state_->plan(PadCall(options, args));
  return PadGroupsPlan(
      std::make_shared<PadGroupsPlan::State>(PadGroupsPlan::State{options, std::move(plan)}));
}

UnpadGroupsPlan Context::plan(const PadGroupsOptions& options, const UnpadGroupsArgs& args) {
  auto plan = state_->plan(PadCall(options, args));
  return UnpadGroupsPlan(
      std::make_shared<UnpadGroupsPlan::State>(UnpadGroupsPlan::State{options, std::move(plan)}));
}

void PadGroupsPlan::launch(const PadGroupsArgs& args, Stream stream) const {
  dispatch::launch_held(*state_->plan, PadCall(state_->options, args), stream);
}

void UnpadGroupsPlan::launch(const UnpadGroupsArgs& args, Stream stream) const {
  dispatch::launch_held(*state_->plan, PadCall(state_->options, args), stream);
}

}  // namespace mxjit
