// Any bytes as a problem file: an Error, or a problem that survives print and parse. Anything else is a
// fault.
#include <cstdlib>
#include <iostream>
#include <string_view>

#include "mxjit/error.hpp"
#include "problem/problem.hpp"

namespace {

[[noreturn]] void abort_with(std::string_view what, std::string_view text) {
  std::cerr << what << ": " << text << "\n";
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace mxjit;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  problem::Problem parsed;
  try {
    parsed = problem::parse(text);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::invalid_argument) abort_with("refused with the wrong code", error.what());
    return 0;
  }
  // What was accepted must stay acceptable.
  const std::string printed = problem::print(parsed);
  const problem::Problem again = problem::parse(printed);
  if (!(again == parsed)) abort_with("changed by print and parse", printed);
  if (problem::print(again) != printed) abort_with("printed differently the second time", printed);
  if (problem::is_concrete(parsed) && problem::tensors(parsed).empty())
    abort_with("without tensors", printed);
  return 0;
}
