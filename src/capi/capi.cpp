// The functions of mxjit.h.
#include <fmt/format.h>

#include "capi/convert.hpp"
#include "capi/guard.hpp"
#include "capi/handles.hpp"
#include "capi/sized.hpp"
#include "dispatch/context_state.hpp"
#include "mxjit/log.hpp"

using namespace mxjit;
using namespace mxjit::capi;

namespace {

std::uint64_t count(std::chrono::nanoseconds time) { return static_cast<std::uint64_t>(time.count()); }

}  // namespace

const char* mxjit_version(void) { return version().data(); }

mxjit_status mxjit_context_create(const mxjit_context_options* options, mxjit_context** context) {
  return guarded([&] {
    clear(context, "context");
    *context = new mxjit_context{std::make_unique<Context>(context_options(options))};
  });
}

void mxjit_context_destroy(mxjit_context* context) { delete context; }

mxjit_status mxjit_load(mxjit_context* context, const char* trace) {
  return guarded([&] {
    Context& held = context_of(context);
    require(trace, "trace");
    held.load(trace);
  });
}

mxjit_status mxjit_quantize_workspace_size(const mxjit_quantize_options* options,
                                           const mxjit_quantize_args* args, size_t* bytes) {
  return guarded([&] {
    require(bytes, "bytes");
    *bytes = mxjit::workspace_size(quantize_options(options), quantize_args(args).x);
  });
}

mxjit_status mxjit_quantize(mxjit_context* context, const mxjit_quantize_options* options,
                            const mxjit_quantize_args* args, mxjit_stream stream) {
  return guarded(
      [&] { context_of(context).quantize(quantize_options(options), quantize_args(args), stream); });
}

mxjit_status mxjit_plan_quantize(mxjit_context* context, const mxjit_quantize_options* options,
                                 const mxjit_quantize_args* args, mxjit_plan** plan) {
  return guarded([&] {
    clear(plan, "plan");
    *plan = new mxjit_plan{context_of(context).plan(quantize_options(options), quantize_args(args))};
  });
}

mxjit_status mxjit_launch_quantize(const mxjit_plan* plan, const mxjit_quantize_args* args,
                                   mxjit_stream stream) {
  return guarded(
      [&] { plan_of<QuantizePlan>(plan, "mxjit_plan_quantize").launch(quantize_args(args), stream); });
}

mxjit_status mxjit_gemm(mxjit_context* context, const mxjit_gemm_options* options,
                        const mxjit_gemm_args* args, mxjit_stream stream) {
  return guarded([&] { context_of(context).gemm(gemm_options(options), gemm_args(args), stream); });
}

mxjit_status mxjit_plan_gemm(mxjit_context* context, const mxjit_gemm_options* options,
                             const mxjit_gemm_args* args, mxjit_plan** plan) {
  return guarded([&] {
    clear(plan, "plan");
    *plan = new mxjit_plan{context_of(context).plan(gemm_options(options), gemm_args(args))};
  });
}

mxjit_status mxjit_launch_gemm(const mxjit_plan* plan, const mxjit_gemm_args* args, mxjit_stream stream) {
  return guarded([&] { plan_of<GemmPlan>(plan, "mxjit_plan_gemm").launch(gemm_args(args), stream); });
}

void mxjit_plan_destroy(mxjit_plan* plan) { delete plan; }

mxjit_status mxjit_context_statistics(const mxjit_context* context, mxjit_statistics* statistics) {
  return guarded([&] {
    const Statistics from = context_of(context).statistics();
    require(statistics, "statistics");
    mxjit_statistics made = MXJIT_STATISTICS_INIT;
    made.memory_hits = from.memory_hits;
    made.root_hits = from.root_hits;
    made.layer_hits = from.layer_hits();
    made.layers = from.layers.size();
    made.compiles = from.compiles;
    made.compile_failures = from.compile_failures;
    made.loads = from.loads;
    made.publishes = from.publishes;
    made.publish_failures = from.publish_failures;
    made.quarantined = from.quarantined;
    made.refused = from.refused;
    made.evicted = from.evicted;
    made.lock_waits = from.lock_waits;
    made.lock_failures = from.lock_failures;
    made.look_up_ns = count(from.look_up_time);
    made.compile_ns = count(from.compile_time);
    made.publish_ns = count(from.publish_time);
    made.load_ns = count(from.load_time);
    write_sized(*statistics, made, "statistics");
  });
}

mxjit_status mxjit_context_layer(const mxjit_context* context, size_t index, const char** path,
                                 uint64_t* hits) {
  return guarded([&] {
    Context& held = context_of(context);
    const Statistics from = held.statistics();
    if (index >= from.layers.size())
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("index: expected less than the {} layers, got {}", from.layers.size(), index),
                  "index");
    // The statistics' copy goes; the options stay as long as the context.
    if (path != nullptr) *path = dispatch::ContextAccess::state(held).cache->options().layers[index].c_str();
    if (hits != nullptr) *hits = from.layers[index].hits;
  });
}

mxjit_status mxjit_set_log_callback(mxjit_log_callback callback, void* user, int32_t level) {
  return guarded([&] {
    if (level < MXJIT_LOG_ENVIRONMENT || level > MXJIT_LOG_DEBUG)
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format("level: expected MXJIT_LOG_ENVIRONMENT, _ERROR, _WARN, _INFO or _DEBUG, got {}", level),
          "level");
    if (callback == nullptr) return set_log_sink({});
    const auto sink = [callback, user](LogLevel line_level, std::string_view line) {
      callback(user, static_cast<int32_t>(line_level), std::string(line).c_str());
    };
    if (level == MXJIT_LOG_ENVIRONMENT) return set_log_sink(sink);
    set_log_sink(sink, static_cast<LogLevel>(level));
  });
}
