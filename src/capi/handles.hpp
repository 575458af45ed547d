// What the opaque handles hold, and the door through which tests make them.
#pragma once

#include <memory>
#include <string>
#include <variant>

#include "capi/guard.hpp"
#include "mxjit/context.hpp"
#include "mxjit/mxjit.h"

struct mxjit_context {
  std::unique_ptr<mxjit::Context> context;
};

struct mxjit_plan {
  std::variant<mxjit::QuantizePlan, mxjit::GemmPlan, mxjit::DequantizePlan, mxjit::PackScalesPlan,
               mxjit::PadGroupsPlan, mxjit::UnpadGroupsPlan>
      plan;
};

namespace mxjit::capi {

inline Context& context_of(const mxjit_context* context) {
  require(context, "context");
  return *context->context;
}

/// The plan, if one of its kind; else Error(invalid_argument) that says which function makes them.
template <typename Plan>
const Plan& plan_of(const mxjit_plan* plan, const char* made_by) {
  require(plan, "plan");
  const auto* held = std::get_if<Plan>(&plan->plan);
  if (held == nullptr)
    throw Error(ErrorCode::invalid_argument,
                std::string("plan: expected one of ") + made_by + ", got one of another operation", "plan");
  return *held;
}

/// For what a function makes: null until it is made.
template <typename Handle>
void clear(Handle** handle, const char* argument) {
  require(handle, argument);
  *handle = nullptr;
}

}  // namespace mxjit::capi
