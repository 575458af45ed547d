// The entries of the ops that are one kernel each.
#include "dispatch/context_state.hpp"
#include "dispatch/dequantize_call.hpp"
#include "dispatch/pack_call.hpp"
#include "dispatch/pad_call.hpp"

namespace mxjit {

void Context::dequantize(const DequantizeOptions& options, const DequantizeArgs& args, Stream stream) {
  state_->run(dispatch::DequantizeCall(options, args), stream);
}

void Context::pack_scales(const PackScalesOptions& options, const PackScalesArgs& args, Stream stream) {
  state_->run(dispatch::PackCall(false, options, args), stream);
}

void Context::unpack_scales(const PackScalesOptions& options, const PackScalesArgs& args, Stream stream) {
  state_->run(dispatch::PackCall(true, options, args), stream);
}

void Context::pad_groups(const PadGroupsOptions& options, const PadGroupsArgs& args, Stream stream) {
  state_->run(dispatch::PadCall(options, args), stream);
}

void Context::unpad_groups(const PadGroupsOptions& options, const UnpadGroupsArgs& args, Stream stream) {
  state_->run(dispatch::PadCall(options, args), stream);
}

}  // namespace mxjit
