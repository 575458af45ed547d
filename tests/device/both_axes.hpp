// One problem, both axes of a small bf16 matrix, as a problem and as the arguments of the public API.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "device/guarded.hpp"
#include "device/problems.hpp"
#include "mxjit/error.hpp"
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

template <typename Call>
void expect_error(ErrorCode code, const std::string& argument, Call&& call) {
  try {
    call();
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    EXPECT_EQ(error.argument(), argument) << error.what();
  }
}

}  // namespace mxjit::device
