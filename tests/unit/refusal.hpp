// The error of a call that is refused, or fails.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "mxjit/error.hpp"

namespace mxjit::test {

/// What is said when `call` is refused: names `argument`, what was expected and what came.
template <typename Function>
std::string refusal(const std::string& argument, Function&& call) {
  try {
    call();
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_EQ(error.argument(), argument) << text;
    EXPECT_NE(text.find("expected"), std::string::npos) << text;
    EXPECT_NE(text.find("got"), std::string::npos) << text;
    return text;
  }
  ADD_FAILURE() << "no error that names " << argument;
  return {};
}

/// The call ends in this error.
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

}  // namespace mxjit::test
