#include "mxjit/load.hpp"

#include "dispatch/context_state.hpp"
#include "dispatch/load.hpp"
#include "mxjit/prewarm_plan.hpp"

namespace mxjit::cli {

std::uint64_t load_kernels(Context& context, const std::vector<problem::Problem>& problems) {
  const auto& state = dispatch::ContextAccess::state(context);
  const PrewarmPlan plan = plan_prewarm(problems, {&state.profile}, *state.cache->tuning());
  for (const PlannedKernel& planned : plan.kernels)
    dispatch::load_kernel(context, planned.kernel.descriptor, planned.problem_json);
  return plan.kernels.size();
}

}  // namespace mxjit::cli
