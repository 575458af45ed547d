#include "dispatch/op_call.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string>

#include "codegen/descriptor.hpp"
#include "dispatch/context_state.hpp"
#include "driver/launch.hpp"
#include "groups/params.cuh"
#include "mxjit/error.hpp"

namespace mxjit {
namespace dispatch {

void OpPlan::launch(std::int64_t blocks, void* params, CUstream stream) const {
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  driver::launch(device->api(), kernel,
                 {.x = static_cast<unsigned>(std::clamp<std::int64_t>(blocks, 1, most))}, params, stream);
}

std::int64_t OpPlan::filling(std::int64_t blocks) const noexcept {
  return std::min<std::int64_t>(blocks, std::int64_t{8} * device->facts().sm_count);
}

void launch(const OpPlan& plan, const OpCall& call, CUstream stream) {
  if (plan.device->is_current()) [[likely]]
    return call.launch(plan, stream);
  const driver::ScopedCurrent scope(*plan.device);
  call.launch(plan, stream);
}

void launch_held(const OpPlan& plan, const OpCall& call, CUstream stream) {
  call.check();
  if (call.has_work()) launch(plan, call, stream);
}

void check_group_count(const char* name, std::int32_t count) {
  if (count < 1 || count > most_groups)
    refuse(name, fmt::format("1 to {}", most_groups), fmt::to_string(count));
}

void check_countable(const char* name, std::int64_t rows) {
  if (rows > std::numeric_limits<std::int32_t>::max())
    refuse(name, "rows that int32 offsets can count", fmt::format("{}", rows));
}

void check_extents(const char* name, const Tensor& tensor, int least_rank, int most_rank) {
  if (tensor.rank < least_rank || tensor.rank > most_rank)
    refuse(name,
           least_rank == most_rank ? fmt::format("rank {}", least_rank)
                                   : fmt::format("rank {} or {}", least_rank, most_rank),
           fmt::format("rank {}", tensor.rank));
  for (int i = 0; i < tensor.rank; ++i)
    if (tensor.shape[static_cast<std::size_t>(i)] < 0)
      refuse(name, "extents of at least 0", shape_text(tensor.shape, tensor.rank));
}

void check_overlaps(std::span<const NamedTensor> tensors, std::span<const Span> spans) {
  for (std::size_t i = 0; i < spans.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if ((tensors[i].written || tensors[j].written) && overlap(spans[i], spans[j]))
        refuse(tensors[i].name, fmt::format("memory apart from {}", tensors[j].name),
               fmt::format("bytes {:#x} to {:#x}, which overlap {:#x} to {:#x}", spans[i].begin, spans[i].end,
                           spans[j].begin, spans[j].end));
}

namespace {

// An absent tensor has no rank to check, and nothing to look at.
void check_op_pointers(const driver::DeviceContext& device, const OpCall& call) {
  for (const NamedTensor& named : call.tensors()) check_pointer(device, named.name, *named.tensor);
}

}  // namespace
}  // namespace dispatch

void Context::State::run(const dispatch::OpCall& call, Stream stream) {
  call.check();
  if (!call.has_work()) return;
  const dispatch::OpKey key = call.key();
  if (const auto* plan = op_plans.find(key)) [[likely]] {
    if (check_pointers) [[unlikely]]
      dispatch::check_op_pointers(*device, call);
    return dispatch::launch(**plan, call, stream);
  }
  const driver::ScopedCurrent scope(*device);
  dispatch::check_op_pointers(*device, call);
  if (trace) record(call.problem());
  CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
  driver::check(device->api(), device->api().stream_is_capturing(stream, &capture), "cuStreamIsCapturing");
  const auto plan = capture == CU_STREAM_CAPTURE_STATUS_NONE
                        ? op_plans.get(key, [&] { return make_op_plan(call); })
                        : op_plans.adopt(key, op_plan_of_loaded(call));
  call.launch(*plan, stream);
}

std::shared_ptr<const dispatch::OpPlan> Context::State::plan(const dispatch::OpCall& call) {
  call.check();
  const driver::ScopedCurrent scope(*device);
  dispatch::check_op_pointers(*device, call);
  return op_plans.get(call.key(), [&] {
    if (trace) record(call.problem());
    return make_op_plan(call);
  });
}

std::shared_ptr<const dispatch::OpPlan> Context::State::make_op_plan(const dispatch::OpCall& call) {
  const codegen::KernelDescriptor wanted{call.configuration(), std::string(profile.target)};
  const std::shared_ptr<const cache::Entry> entry = cache->get(wanted, problem::print(call.problem()));
  const driver::ScopedCurrent scope(*device);
  return std::make_shared<dispatch::OpPlan>(dispatch::OpPlan{device, load(*entry, wanted.configuration)});
}

std::shared_ptr<const dispatch::OpPlan> Context::State::op_plan_of_loaded(const dispatch::OpCall& call) {
  const codegen::KernelDescriptor wanted{call.configuration(), std::string(profile.target)};
  const auto kernel = find_loaded(codegen::key(wanted));
  if (!kernel)
    throw Error(
        ErrorCode::not_loaded,
        fmt::format("the stream captures and the kernel is not loaded: {}; load() its problem, or call once "
                    "before the capture",
                    codegen::print(wanted)),
        "stream");
  return std::make_shared<dispatch::OpPlan>(dispatch::OpPlan{device, *kernel});
}

}  // namespace mxjit
