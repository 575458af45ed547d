// What a Context and a plan hold, and the door through which tools and tests reach it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "cache/cache.hpp"
#include "configure/gemm_tuning.hpp"
#include "configure/profile.hpp"
#include "dispatch/gemm_key.hpp"
#include "dispatch/gemm_launch.hpp"
#include "dispatch/op_call.hpp"
#include "dispatch/plan_table.hpp"
#include "dispatch/quantize_key.hpp"
#include "dispatch/quantize_launch.hpp"
#include "dispatch/trace.hpp"
#include "driver/device_context.hpp"
#include "driver/loaded_kernel.hpp"
#include "mxjit/context.hpp"

namespace mxjit {

struct QuantizePlan::State {
  struct Step {
    driver::LoadedKernel kernel;
    dispatch::QuantizeRecipe recipe;
  };

  std::shared_ptr<const driver::DeviceContext> device;
  QuantizeOptions options;
  dispatch::QuantizeKey key;
  std::vector<Step> steps;  // in launch order

  /// Launches checked tensors with elements. Makes the plan's context current for the calls if it is not.
  void launch(const QuantizeArgs& args, Stream stream) const;
};

struct GemmPlan::State {
  std::shared_ptr<const driver::DeviceContext> device;
  GemmOptions options;
  dispatch::GemmKey key;
  driver::LoadedKernel kernel;
  dispatch::GemmRecipe recipe;

  /// As QuantizePlan::State::launch.
  void launch(const GemmArgs& args, const dispatch::GemmSizes& sizes, Stream stream) const;
};

struct DequantizePlan::State {
  DequantizeOptions options;
  DType q, x;
  std::shared_ptr<const dispatch::OpPlan> plan;
};
struct PackScalesPlan::State {
  bool unpack;
  PackScalesOptions options;
  std::shared_ptr<const dispatch::OpPlan> plan;
};
struct PadGroupsPlan::State {
  PadGroupsOptions options;
  std::shared_ptr<const dispatch::OpPlan> plan;
};
struct UnpadGroupsPlan::State {
  PadGroupsOptions options;
  std::shared_ptr<const dispatch::OpPlan> plan;
};

struct Context::State {
  State(std::shared_ptr<const driver::DeviceContext> device_context,
        std::shared_ptr<driver::Libraries> loaded, std::shared_ptr<cache::Cache> kernel_cache);

  std::shared_ptr<const driver::DeviceContext> device;
  std::shared_ptr<driver::Libraries> libraries;
  std::shared_ptr<cache::Cache> cache;
  const configure::Profile& profile;
  dispatch::PlanTable<dispatch::QuantizeKey, QuantizePlan::State> quantize_plans;
  dispatch::PlanTable<dispatch::GemmKey, GemmPlan::State> gemm_plans;
  dispatch::PlanTable<dispatch::OpKey, dispatch::OpPlan> op_plans;
  std::atomic<std::uint64_t> loads{0}, load_ns{0};
  /// The choices of tiles measured for this device, read from the cache by the first call.
  const configure::GemmTuning& tuning() {
    const configure::GemmTuning* read = tuning_.load(std::memory_order_acquire);
    return read != nullptr ? *read : read_tuning();
  }

  bool check_pointers = false;  // in every call, not only in the first of a key
  driver::Start start = driver::Start::in_order;
  std::shared_ptr<dispatch::Trace> trace;  // null: none is kept

  /// Adds the problem of a call whose key is new to the trace, unless it has no kernel.
  void record(const problem::Problem& problem) const;

  /// The plan of a call whose key the table lacks: made, or, while `stream` captures, put together from
  /// loaded kernels. Looks where the pointers point, too.
  std::shared_ptr<const QuantizePlan::State> plan_of_call(const QuantizeOptions& options,
                                                          const QuantizeArgs& args,
                                                          const dispatch::QuantizeKey& key, Stream stream);
  /// The kernel of an entry on this context, which must be current; loaded and counted where it is not yet.
  driver::LoadedKernel load(const cache::Entry& entry, const configure::Configuration& configuration);
  /// The kernel of `key` if it is loaded on this context.
  std::optional<driver::LoadedKernel> find_loaded(const Digest& key) const;
  /// Compiles and loads what `key` needs.
  std::shared_ptr<const QuantizePlan::State> make_plan(const QuantizeOptions& options,
                                                       const dispatch::QuantizeKey& key);
  /// As make_plan, from kernels that are loaded already; Error(not_loaded) naming the first that is not.
  std::shared_ptr<const QuantizePlan::State> plan_of_loaded(const QuantizeOptions& options,
                                                            const dispatch::QuantizeKey& key);
  std::shared_ptr<const GemmPlan::State> make_gemm_plan(const GemmOptions& options, const GemmArgs& args,
                                                        const dispatch::GemmKey& key);
  std::shared_ptr<const GemmPlan::State> gemm_plan_of_loaded(const GemmOptions& options,
                                                             const dispatch::GemmKey& key);

  /// Any call of an op that is one kernel: checks, looks up, compiles and loads if needed, launches.
  void run(const dispatch::OpCall& call, Stream stream);
  /// Checks, compiles and loads if needed.
  std::shared_ptr<const dispatch::OpPlan> plan(const dispatch::OpCall& call);
  std::shared_ptr<const dispatch::OpPlan> make_op_plan(const dispatch::OpCall& call);
  std::shared_ptr<const dispatch::OpPlan> op_plan_of_loaded(const dispatch::OpCall& call);

 private:
  const configure::GemmTuning& read_tuning();

  std::mutex tuning_mutex_;
  configure::GemmTuning own_tuning_;  // unchanged once tuning_ points here
  std::atomic<const configure::GemmTuning*> tuning_{nullptr};
};

namespace dispatch {

/// Internals of the public classes, for the library's own parts, the program and the tests.
struct ContextAccess {
  static std::unique_ptr<Context> make(std::shared_ptr<const driver::DeviceContext> device,
                                       std::shared_ptr<driver::Libraries> libraries,
                                       std::shared_ptr<cache::Cache> cache);
  static Context::State& state(Context& context) { return *context.state_; }
};

/// A context on the primary context of device `ordinal`, which becomes current in this thread, with a cache
/// of its own: what the program runs problems on.
std::unique_ptr<Context> make_context(int ordinal, const cache::Options& options);

}  // namespace dispatch
}  // namespace mxjit
