#include "dispatch/replay.hpp"

#include "configure/configure.hpp"
#include "dispatch/context_state.hpp"
#include "dispatch/placed.hpp"

namespace mxjit::dispatch {

void replay(Context& context, const problem::Problem& given) {
  const problem::Problem problem = problem::with_defaults(given);
  const driver::DeviceContext& device = *ContextAccess::state(context).device;
  configure::configure(problem, ContextAccess::state(context).profile);  // before any memory is taken
  const driver::ScopedCurrent scope(device);
  const driver::Api& api = device.api();
  const driver::OwnedStream stream = driver::make_stream(api);
  const PlacedTensors placed = place(api, problem, stream.get());
  launch_problem(context, problem, placed.tensors, stream.get());
  driver::check(api, api.stream_synchronize(stream.get()), "cuStreamSynchronize");
}

}  // namespace mxjit::dispatch
