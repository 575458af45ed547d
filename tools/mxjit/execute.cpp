#include "mxjit/execute.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

#include "dispatch/context_state.hpp"
#include "dispatch/run.hpp"
#include "driver/device_context.hpp"
#include "driver/driver.hpp"
#include "mxjit/error.hpp"
#include "mxjit/report.hpp"
#include "reference/reference.hpp"

namespace mxjit::cli {
namespace {

std::string text(const std::vector<std::int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ","));
}

template <class Value>
bool contains(const std::vector<Value>& values, const Value& value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

void check_input(const problem::TensorDecl& decl, const HostTensor& tensor) {
  const auto refuse = [&](const std::string& what) {
    throw Error(ErrorCode::invalid_argument, fmt::format("tensor \"{}\": {}", decl.name, what), decl.name);
  };
  if (tensor.dtype != decl.dtype && !contains(decl.also_dtypes, tensor.dtype))
    refuse(fmt::format("expected dtype {}, got {}", to_string(decl.dtype), to_string(tensor.dtype)));
  if (tensor.shape != decl.shape && !contains(decl.also_shapes, tensor.shape))
    refuse(fmt::format("expected shape {}, got {}", text(decl.shape), text(tensor.shape)));
}

}  // namespace

std::vector<std::string> check_inputs(const problem::Problem& problem, const TensorMap& tensors) {
  std::set<std::string> read;
  for (const problem::TensorDecl& decl : problem::tensors(problem)) {
    if (decl.output) continue;
    const auto found = tensors.find(decl.name);
    if (found != tensors.end()) {
      check_input(decl, found->second);
      read.insert(decl.name);
    } else if (!decl.optional) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("tensor \"{}\" is missing: expected {} {}", decl.name, to_string(decl.dtype),
                              text(decl.shape)),
                  decl.name);
    }
  }
  std::vector<std::string> unread;
  for (const auto& [name, tensor] : tensors)
    if (!read.contains(name)) unread.push_back(name);
  return unread;
}

struct Executor::Gpu {
  std::string name;            // "cuda:N"
  bool may_fall_back = false;  // --device auto
  bool told = false;           // that it fell back
  std::unique_ptr<Context> context;
};

Executor::Executor(const DeviceChoice& choice, const cache::Options& options) {
  if (choice.kind == DeviceChoice::Kind::cpu) return;
  const bool automatic = choice.kind == DeviceChoice::Kind::automatic;
  if (const std::string reason = driver::why_no_gpu(); !reason.empty()) {
    if (automatic) return;
    throw Error(ErrorCode::unavailable, fmt::format("--device cuda: there is no usable GPU: {}", reason),
                "--device");
  }
  int count = 0;
  const driver::Api& api = driver::api();
  driver::check(api, api.device_get_count(&count), "cuDeviceGetCount");
  if (choice.index >= count)
    throw Error(ErrorCode::unavailable,
                fmt::format("--device cuda:{}: GPUs here are numbered 0 to {}", choice.index, count - 1),
                "--device");
  gpu_ = std::make_unique<Gpu>();
  gpu_->name = fmt::format("cuda:{}", choice.index);
  gpu_->may_fall_back = automatic;
  gpu_->context = dispatch::make_context(choice.index, options);
}

Executor::~Executor() = default;

Executed Executor::run(const problem::Problem& problem, const TensorMap& inputs) {
  if (gpu_) {
    try {
      return {dispatch::run_on_device(*gpu_->context, problem, inputs), gpu_->name};
    } catch (const Error& error) {
      if (error.code() != ErrorCode::unsupported || !gpu_->may_fall_back) throw;
      if (!std::exchange(gpu_->told, true))
        note(fmt::format("on the CPU instead of the GPU: {}", error.what()));
    }
  }
  return {reference::run(problem, inputs), "cpu"};
}

Statistics Executor::statistics() const { return gpu_ ? gpu_->context->statistics() : Statistics(); }

}  // namespace mxjit::cli
