// Context and held plans, for GEMM.
#include <fmt/format.h>

#include <utility>

#include "codegen/descriptor.hpp"
#include "dispatch/context_state.hpp"
#include "dispatch/problem_of_call.hpp"
#include "mxjit/error.hpp"

namespace mxjit {
namespace {

bool has_elements(const dispatch::GemmSizes& sizes) {
  return sizes.batch != 0 && sizes.m != 0 && sizes.n != 0;
}

// What a call without elements of D writes.
void launch_nothing(const driver::DeviceContext& device, const GemmOptions& options, const GemmArgs& args,
                    Stream stream) {
  if (!options.amax) return;
  const driver::ScopedCurrent scope(device);
  dispatch::check_pointers(device, args);
  dispatch::clear_amax(device.api(), options, args, stream);
}

codegen::KernelDescriptor descriptor(const dispatch::GemmKey& key, const configure::Profile& profile) {
  return {dispatch::gemm_configuration(key), std::string(profile.target)};
}

}  // namespace

void GemmPlan::State::launch(const GemmArgs& args, const dispatch::GemmSizes& sizes, Stream stream) const {
  if (!device->is_current()) [[unlikely]] {
    const driver::ScopedCurrent scope(*device);
    return launch(args, sizes, stream);
  }
  dispatch::launch_gemm(device->api(), kernel, recipe, options, args, sizes, stream);
}

void GemmPlan::launch(const GemmArgs& args, Stream stream) const {
  const dispatch::GemmSizes sizes = dispatch::check_gemm(state_->options, args);
  if (!has_elements(sizes)) return launch_nothing(*state_->device, state_->options, args, stream);
  const configure::GemmTraits traits = dispatch::gemm_traits(state_->options, args);
  const bool planned = state_->key.tile != dispatch::GemmKey::general;
  if (!(traits == state_->key.traits) || (planned && sizes.k == 0)) [[unlikely]]
    throw Error(
        ErrorCode::invalid_argument,
        "a: expected dtypes, alignments of bases, pitches and N, bias and beta (zero or not) as planned, got "
        "others",
        "a");
  state_->launch(args, sizes, stream);
}

const configure::GemmTuning& Context::State::read_tuning() {
  // Before the lock: it may log.
  auto choices = cache->choices(profile, device->facts().sm_count);
  const std::scoped_lock lock(tuning_mutex_);
  if (tuning_.load(std::memory_order_relaxed) == nullptr) {
    own_tuning_ = std::move(choices);
    tuning_.store(&own_tuning_, std::memory_order_release);
  }
  return own_tuning_;
}

std::shared_ptr<const GemmPlan::State> Context::State::make_gemm_plan(const GemmOptions& options,
                                                                      const GemmArgs& args,
                                                                      const dispatch::GemmKey& key) {
  const codegen::KernelDescriptor wanted = descriptor(key, profile);
  const std::shared_ptr<const cache::Entry> entry =
      cache->get(wanted, problem::print(dispatch::problem_of(options, args)));
  const configure::Configuration& configuration = wanted.configuration;
  const driver::ScopedCurrent scope(*device);
  return std::make_shared<GemmPlan::State>(
      GemmPlan::State{device, options, key, load(*entry, configuration),
                      dispatch::gemm_recipe(configuration, device->facts().sm_count)});
}

std::shared_ptr<const GemmPlan::State> Context::State::gemm_plan_of_loaded(const GemmOptions& options,
                                                                           const dispatch::GemmKey& key) {
  const codegen::KernelDescriptor wanted = descriptor(key, profile);
  const auto kernel = find_loaded(codegen::key(wanted));
  if (!kernel)
    throw Error(
        ErrorCode::not_loaded,
        fmt::format("the stream captures and the kernel is not loaded: {}; plan() it, or call once before "
                    "the capture",
                    codegen::print(wanted)),
        "stream");
  return std::make_shared<GemmPlan::State>(GemmPlan::State{
      device, options, key, *kernel, dispatch::gemm_recipe(wanted.configuration, device->facts().sm_count)});
}

void Context::gemm(const GemmOptions& options, const GemmArgs& args, Stream stream) {
  dispatch::check_options(options);
  const dispatch::GemmSizes sizes = dispatch::check_gemm(options, args);
  State& state = *state_;
  if (!has_elements(sizes)) return launch_nothing(*state.device, options, args, stream);
  const dispatch::GemmKey key =
      dispatch::gemm_key(dispatch::gemm_traits(options, args), sizes, state.profile, &state.tuning());
  if (const auto* plan = state.gemm_plans.find(key)) [[likely]] {
    if (state.check_pointers) [[unlikely]]
      dispatch::check_pointers(*state.device, args);
    (*plan)->launch(args, sizes, stream);
    return;
  }
  const driver::ScopedCurrent scope(*state.device);
  dispatch::check_pointers(*state.device, args);
  if (state.trace) state.record(dispatch::problem_of(options, args));
  CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
  driver::check(state.device->api(), state.device->api().stream_is_capturing(stream, &capture),
                "cuStreamIsCapturing");
  const auto plan = capture == CU_STREAM_CAPTURE_STATUS_NONE
                        ? state.gemm_plans.get(key, [&] { return state.make_gemm_plan(options, args, key); })
                        : state.gemm_plans.adopt(key, state.gemm_plan_of_loaded(options, key));
  plan->launch(args, sizes, stream);
}

GemmPlan Context::plan(const GemmOptions& options, const GemmArgs& args) {
  dispatch::check_options(options);
  const dispatch::GemmSizes sizes = dispatch::check_gemm(options, args);
  State& state = *state_;
  const driver::ScopedCurrent scope(*state.device);
  dispatch::check_pointers(*state.device, args);
  const dispatch::GemmKey key =
      dispatch::gemm_key(dispatch::gemm_traits(options, args), sizes, state.profile, &state.tuning());
  return GemmPlan(state.gemm_plans.get(key, [&] {
    if (state.trace) state.record(dispatch::problem_of(options, args));
    return state.make_gemm_plan(options, args, key);
  }));
}

}  // namespace mxjit
