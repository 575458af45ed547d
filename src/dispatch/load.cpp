#include "dispatch/load.hpp"

#include <utility>
#include <vector>

#include "configure/configure.hpp"
#include "dispatch/context_state.hpp"
#include "problem/trace.hpp"

namespace mxjit {

namespace dispatch {

void load_kernel(Context& context, const codegen::KernelDescriptor& descriptor, std::string_view problem) {
  auto& state = ContextAccess::state(context);
  const std::shared_ptr<const cache::Entry> entry = state.cache->get(descriptor, problem);
  const driver::ScopedCurrent scope(*state.device);
  state.load(*entry, descriptor.configuration);
}

}  // namespace dispatch

void Context::load(std::string_view trace) {
  for (const problem::Problem& problem : problem::parse_trace(trace)) {
    const std::string text = problem::print(problem);
    for (configure::Configuration& configuration :
         configure::configure(problem, state_->profile, &state_->tuning()))
      dispatch::load_kernel(*this, {std::move(configuration), std::string(state_->profile.target)}, text);
  }
}

}  // namespace mxjit
