// One problem, both axes of a small bf16 matrix, as a problem and as the arguments of the public API.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "device/guarded.hpp"
#include "device/problems.hpp"
#include "mxjit/quantize.hpp"

namespace mxjit::device {

inline constexpr std::int64_t rows = 96;
inline constexpr std::int64_t columns = 160;

inline QuantizeOptions both_axes() { return {.axes = {.row = true, .col = true}}; }

inline problem::Problem both_axes_problem(std::int64_t m, std::int64_t n) {
  problem::Quantize quantize;
  quantize.input.shape = {m, n};
  quantize.axes = {.row = true, .col = true};
  return whole(quantize);
}

inline QuantizeArgs args_of(const GuardedProblem& guarded) {
  const dispatch::DeviceTensors& tensors = guarded.tensors();
  return {.x = tensors.at("x"),
          .q_row = tensors.at("q_row"),
          .s_row = tensors.at("s_row"),
          .q_col = tensors.at("q_col"),
          .s_col = tensors.at("s_col")};
}

}  // namespace mxjit::device
