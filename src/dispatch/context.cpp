#include <fmt/format.h>

#include <cstdlib>
#include <utility>

#include "base/log.hpp"
#include "base/stopwatch.hpp"
#include "codegen/descriptor.hpp"
#include "configure/configure.hpp"
#include "dispatch/context_state.hpp"
#include "dispatch/problem_of_call.hpp"
#include "dispatch/profile_of_device.hpp"
#include "dispatch/quantize_check.hpp"
#include "mxjit/error.hpp"

namespace mxjit {
namespace {

using driver::DeviceContext;

bool has_elements(const Tensor& tensor) {
  for (int i = 0; i < tensor.rank; ++i)
    if (tensor.shape[static_cast<std::size_t>(i)] == 0) return false;
  return true;
}

// Scales of groups, of rows and of the tensor have places that no element owns, and those are written too.
bool has_work(const QuantizeOptions& options, const QuantizeArgs& args) {
  if (options.groups.count > 0 || has_elements(args.x)) return true;
  return (options.axes.row && has_elements(args.s_row)) || (options.axes.col && has_elements(args.s_col));
}

cache::Options cache_options(const ContextOptions& options) {
  cache::Options merged = cache::Options::from_environment();
  if (options.cache_dir) merged.root = *options.cache_dir;
  if (options.bundles) merged.layers.assign(options.bundles->begin(), options.bundles->end());
  if (options.forbid_compile) merged.forbid_compile = *options.forbid_compile;
  return merged;
}

std::shared_ptr<dispatch::Trace> trace_at(const std::string& path) {
  return path.empty() ? nullptr : dispatch::Trace::of_process(path);
}

std::shared_ptr<dispatch::Trace> trace_of_environment() {
  const char* path = std::getenv("MXJIT_TRACE");
  return trace_at(path == nullptr ? "" : path);
}

[[noreturn, gnu::cold]] void refuse_plan(const std::string& expected, const std::string& got) {
  throw Error(ErrorCode::invalid_argument, fmt::format("x: expected {}, as planned, got {}", expected, got),
              "x");
}

// Says what of a held plan the arguments do not fit.
[[noreturn, gnu::cold]] void refuse_other_plan(const dispatch::QuantizeKey& planned,
                                               const dispatch::QuantizeKey& came) {
  if (came.input != planned.input)
    refuse_plan(fmt::format("dtype {}", to_string(static_cast<DType>(planned.input))),
                std::string(to_string(static_cast<DType>(came.input))));
  if (came.rank != planned.rank)
    refuse_plan(fmt::format("rank {}", planned.rank), fmt::format("rank {}", came.rank));
  if (came.n != planned.n) refuse_plan(fmt::format("N = {}", planned.n), fmt::format("N = {}", came.n));
  if ((came.axes ^ planned.axes) != 0) {
    const auto limit = [](const dispatch::QuantizeKey& key) {
      return (key.axes & 64) != 0 ? "a limit" : "none";
    };
    throw Error(ErrorCode::invalid_argument,
                fmt::format("swiglu_limit: expected {}, as planned, got {}", limit(planned), limit(came)),
                "swiglu_limit");
  }
  const auto bucket = [](const dispatch::QuantizeKey& key) {
    return key.m_bucket == 0 ? std::string("M <= 1")
                             : fmt::format("2^{} < M <= 2^{}", key.m_bucket - 1, key.m_bucket);
  };
  refuse_plan(bucket(planned), bucket(came));
}

// The kernels of a key, in launch order.
std::vector<codegen::KernelDescriptor> descriptors(const dispatch::QuantizeKey& key,
                                                   const configure::Profile& profile) {
  std::vector<codegen::KernelDescriptor> all;
  for (configure::Configuration& configuration :
       configure::configure(dispatch::quantize_problem(key), profile))
    all.push_back({std::move(configuration), std::string(profile.target)});
  return all;
}

}  // namespace

// ---- plans

void QuantizePlan::State::launch(const QuantizeArgs& args, Stream stream) const {
  if (!device->is_current()) [[unlikely]] {
    const driver::ScopedCurrent scope(*device);
    return launch(args, stream);
  }
  for (const Step& step : steps)
    dispatch::launch_quantize(device->api(), step.kernel, step.recipe, args, stream);
}

void QuantizePlan::launch(const QuantizeArgs& args, Stream stream) const {
  dispatch::check_quantize(state_->options, args);
  if (!has_work(state_->options, args)) return;
  const dispatch::QuantizeKey key = dispatch::quantize_key(state_->options, args);
  if (!(key == state_->key)) [[unlikely]]
    refuse_other_plan(state_->key, key);
  state_->launch(args, stream);
}

// ---- context

Context::State::State(std::shared_ptr<const DeviceContext> device_context,
                      std::shared_ptr<driver::Libraries> loaded, std::shared_ptr<cache::Cache> kernel_cache)
    : device(std::move(device_context)),
      libraries(std::move(loaded)),
      cache(std::move(kernel_cache)),
      profile(dispatch::profile_of(device->facts())) {}

void Context::State::record(const problem::Problem& problem) const {
  try {
    configure::configure(problem, profile);
  } catch (const Error&) {
    return;  // the call itself says what has no kernel
  }
  trace->record(problem);
}

driver::LoadedKernel Context::State::load(const cache::Entry& entry,
                                          const configure::Configuration& configuration) {
  if (const auto ready = find_loaded(entry.key)) return *ready;
  driver::LoadedKernel kernel;
  {
    const Stopwatch watch(load_ns);
    kernel = libraries->load(*device, entry.key, entry.cubin, entry.symbol,
                             {configuration.threads, configuration.shared_bytes});
  }
  ++loads;
  if (logs(LogLevel::debug))
    log(LogLevel::debug,
        fmt::format("loaded {} on device {} ({})", entry.symbol, device->device(), device->facts().name));
  kernel.start = start;
  return kernel;
}

std::optional<driver::LoadedKernel> Context::State::find_loaded(const Digest& key) const {
  auto kernel = libraries->find(*device, key);
  if (kernel) kernel->start = start;
  return kernel;
}

std::shared_ptr<const QuantizePlan::State> Context::State::make_plan(const QuantizeOptions& options,
                                                                     const dispatch::QuantizeKey& key) {
  auto plan = std::make_shared<QuantizePlan::State>(QuantizePlan::State{device, options, key, {}});
  const std::string problem = problem::print(dispatch::quantize_problem(key));
  for (const codegen::KernelDescriptor& descriptor : descriptors(key, profile)) {
    const std::shared_ptr<const cache::Entry> entry = cache->get(descriptor, problem);
    const configure::Configuration& configuration = descriptor.configuration;
    const driver::ScopedCurrent scope(*device);
    plan->steps.push_back({load(*entry, configuration), dispatch::quantize_recipe(configuration, options)});
  }
  return plan;
}

std::shared_ptr<const QuantizePlan::State> Context::State::plan_of_loaded(const QuantizeOptions& options,
                                                                          const dispatch::QuantizeKey& key) {
  auto plan = std::make_shared<QuantizePlan::State>(QuantizePlan::State{device, options, key, {}});
  for (const codegen::KernelDescriptor& descriptor : descriptors(key, profile)) {
    const auto kernel = find_loaded(codegen::key(descriptor));
    if (!kernel)
      throw Error(ErrorCode::not_loaded,
                  fmt::format("the stream captures and the kernel is not loaded: {}; plan() it, or call once "
                              "before the capture",
                              codegen::print(descriptor)),
                  "stream");
    plan->steps.push_back({*kernel, dispatch::quantize_recipe(descriptor.configuration, options)});
  }
  return plan;
}

Context::Context(const ContextOptions& options)
    : state_(std::make_shared<State>(DeviceContext::current(driver::api()), driver::Libraries::process(),
                                     std::make_shared<cache::Cache>(cache_options(options)))) {
  state_->check_pointers = options.check_pointers;
  if (options.early_start) state_->start = driver::Start::early;
  state_->trace = options.trace ? trace_at(*options.trace) : trace_of_environment();
}

Context::Context(std::shared_ptr<State> state) : state_(std::move(state)) {}

Context::~Context() = default;

void Context::quantize(const QuantizeOptions& options, const QuantizeArgs& args, Stream stream) {
  dispatch::check_options(options);
  dispatch::check_quantize(options, args);
  if (!has_work(options, args)) return;
  State& state = *state_;
  const dispatch::QuantizeKey key = dispatch::quantize_key(options, args);
  if (const auto* plan = state.quantize_plans.find(key)) [[likely]] {
    if (state.check_pointers) [[unlikely]]
      dispatch::check_pointers(*state.device, options, args);
    (*plan)->launch(args, stream);
    return;
  }
  state.plan_of_call(options, args, key, stream)->launch(args, stream);
}

std::shared_ptr<const QuantizePlan::State> Context::State::plan_of_call(const QuantizeOptions& options,
                                                                        const QuantizeArgs& args,
                                                                        const dispatch::QuantizeKey& key,
                                                                        Stream stream) {
  // The stream may belong to the context without the context being current here.
  const driver::ScopedCurrent scope(*device);
  dispatch::check_pointers(*device, options, args);
  if (trace) record(dispatch::problem_of(options, args));
  CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
  driver::check(device->api(), device->api().stream_is_capturing(stream, &capture), "cuStreamIsCapturing");
  if (capture == CU_STREAM_CAPTURE_STATUS_NONE)
    return quantize_plans.get(key, [&] { return make_plan(options, key); });
  return quantize_plans.adopt(key, plan_of_loaded(options, key));
}

QuantizePlan Context::plan(const QuantizeOptions& options, const QuantizeArgs& args) {
  dispatch::check_options(options);
  dispatch::check_quantize(options, args);
  State& state = *state_;
  const driver::ScopedCurrent scope(*state.device);
  dispatch::check_pointers(*state.device, options, args);
  const dispatch::QuantizeKey key = dispatch::quantize_key(options, args);
  std::shared_ptr<const QuantizePlan::State> plan = state.quantize_plans.get(key, [&] {
    if (state.trace) state.record(dispatch::problem_of(options, args));
    return state.make_plan(options, key);
  });
  if (plan->options.groups.count != options.groups.count) {  // a key holds several counts
    QuantizePlan::State own = *plan;
    own.options = options;
    plan = std::make_shared<QuantizePlan::State>(std::move(own));
  }
  return QuantizePlan(std::move(plan));
}

Statistics Context::statistics() const {
  Statistics made = state_->cache->statistics();
  made.loads = state_->loads;
  made.load_time = std::chrono::nanoseconds(state_->load_ns);
  return made;
}

// ---- internal construction

namespace dispatch {

std::unique_ptr<Context> ContextAccess::make(std::shared_ptr<const DeviceContext> device,
                                             std::shared_ptr<driver::Libraries> libraries,
                                             std::shared_ptr<cache::Cache> cache) {
  return std::unique_ptr<Context>(new Context(
      std::make_shared<Context::State>(std::move(device), std::move(libraries), std::move(cache))));
}

std::unique_ptr<Context> make_context(int ordinal, const cache::Options& options) {
  auto context = ContextAccess::make(DeviceContext::primary(driver::api(), ordinal),
                                     driver::Libraries::process(), std::make_shared<cache::Cache>(options));
  ContextAccess::state(*context).trace = trace_of_environment();
  return context;
}

}  // namespace dispatch
}  // namespace mxjit
