// What the opaque handles hold, and the door through which tests make them.
#pragma once

#include <memory>
#include <variant>

#include "mxjit/context.hpp"
#include "mxjit/mxjit.h"

struct mxjit_context {
  std::unique_ptr<mxjit::Context> context;
};

struct mxjit_plan {
  std::variant<mxjit::QuantizePlan, mxjit::GemmPlan> plan;
};
